"""Exact noise on the integers, and the one door to random bits."""
