"""Decays and the strategies that factorize them, with their exact sensitivities and errors."""
