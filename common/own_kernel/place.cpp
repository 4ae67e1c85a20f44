/// @file
/// Nothing: its compile command, in compile_commands.json, is that of the reader's files (build.cpp).
