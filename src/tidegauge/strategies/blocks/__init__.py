"""Block strategies: trees of any shape, with or without blocks that are still open."""

from tidegauge.strategies.blocks.completed import Blocks
from tidegauge.strategies.blocks.design import best_levels, best_shares
from tidegauge.strategies.blocks.opened import OpenBlocks

__all__ = ["Blocks", "OpenBlocks", "best_levels", "best_shares"]
