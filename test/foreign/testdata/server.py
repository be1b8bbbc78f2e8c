from fastmcp import FastMCP

mcp = FastMCP("text")

@mcp.tool
def count_words(text: str) -> int:
    """Counts the words of a text."""
    return len(text.split())

mcp.run()
