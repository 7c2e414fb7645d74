"""Our own model child: one process a chat, speaking Pi's RPC dialect on its standard streams."""
