"""Message schemas: the model, our notation for it, the definitions, and the codecs compiled from them.

`notation` reads a definition of `defs/` into `model`; `decode_source` and `encode_source` write one flat
function per message and version; `cache` compiles them on first use. Nothing here is needed by name outside
`protocol.messages`.
"""
