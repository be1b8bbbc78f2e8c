import os

from openai import OpenAI

response = OpenAI().responses.create(
    model="gpt-5",
    input="What is 2 + 3?",
    tools=[
        {
            "type": "mcp",
            "server_label": "toolsrv",
            "server_url": "https://tools.example.com/mcp",
            "authorization": os.environ["TOOLSRV_TOKEN"],
            "require_approval": "never",
        }
    ],
)
print(response.output_text)
