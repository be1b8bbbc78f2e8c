import os

from anthropic import Anthropic

message = Anthropic().beta.messages.create(
    model="claude-sonnet-5",
    max_tokens=1024,
    betas=["mcp-client-2025-11-20"],
    messages=[{"role": "user", "content": "What is 2 + 3?"}],
    mcp_servers=[
        {"type": "url", "name": "toolsrv", "url": "https://tools.example.com/mcp", "authorization_token": os.environ["TOOLSRV_TOKEN"]}
    ],
    tools=[{"type": "mcp_toolset", "mcp_server_name": "toolsrv"}],
)
print(message.content[-1].text)
