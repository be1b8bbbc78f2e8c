import json
import urllib.request

SERVER = "http://localhost:8000"

tools = {tool["operation_id"]: tool for tool in json.load(urllib.request.urlopen(SERVER + "/tools"))}

# What a model API is offered …
functions = [{"name": name, "description": tool["description"], "parameters": tool["parameters"]} for name, tool in tools.items()]

# … and what becomes of a call that the model makes.
name, arguments = "math-add", {"a": 2, "b": 3}
request = urllib.request.Request(SERVER + tools[name]["path"], json.dumps(arguments).encode(), {"Content-Type": "application/json"})
print(urllib.request.urlopen(request).read().decode())
