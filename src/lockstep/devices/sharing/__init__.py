"""Shares of cards: what containers were granted of each card, held and granted in turns."""
