"""What things are and what they may become: pure, no I/O, no clock, no asyncio."""
