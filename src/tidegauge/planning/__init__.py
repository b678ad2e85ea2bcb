"""From a config file to a plan: everything that affects privacy, frozen before any data is read."""
