"""Trains draft heads (Medusa, EAGLE-3) for one target model from the target's own text. See README.md beside this file."""
