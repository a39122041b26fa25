"""Calls through the official Python SDKs, for tests/model_calls/python.rs. It prints one line of JSON."""

import inspect
import json
import os
import urllib.request
from typing import get_args

import anthropic
import openai
from anthropic.resources.messages.messages import DEPRECATED_MODELS
from openai.types.shared import chat_model

server, credential = os.environ["AGENTCFG_URL"], os.environ["AGENTCFG_API_KEY"]
calls = f"{server}/api/agents/model-calls"
text = "Draft the notes."
messages = [{"role": "user", "content": text}]

writer = openai.OpenAI(base_url=f"{calls}/openai/v1", api_key=credential, default_query={"agent_id": "writer"})
chat = writer.chat.completions.create(model="", messages=messages)
response = writer.responses.create(model="", input=text)
poet = anthropic.Anthropic(base_url=f"{calls}/anthropic", auth_token=credential, default_query={"agent_id": "poet"})
message = poet.messages.create(model="", max_tokens=9, messages=messages)
with poet.messages.stream(model="", max_tokens=9, messages=messages) as stream:
    words = list(stream.text_stream)
try:
    writer.with_options(max_retries=0).chat.completions.create(model="gpt-7", messages=messages)
    soon = None
except openai.BadRequestError as error:
    soon = error.status_code


def is_current(model):
    """Whether the SDK of the provider knows the model and does not call it deprecated."""
    if model["provider"] == "anthropic":
        known = [name for option in get_args(anthropic.types.Model) for name in get_args(option)]
        return model["id"] in known and model["id"] not in DEPRECATED_MODELS
    _, deprecated = inspect.getsource(chat_model).split("Deprecated values")
    return model["id"] in get_args(chat_model.ChatModel) and f'"{model["id"]}"' not in deprecated


workspace = os.environ["WORKSPACE_ID"]
request = urllib.request.Request(f"{server}/api/models?workspace_id={workspace}")
request.add_header("Authorization", f"Bearer {credential}")
catalogue = json.load(urllib.request.urlopen(request))
available = [model for model in catalogue if model["status"] == "available"]

print(
    json.dumps(
        {
            "chat": [chat.choices[0].message.content, chat.model],
            "response": [response.output_text, response.model],
            "message": [message.content[0].text, message.model],
            "words": words,
            "soon": soon,
            "available": len(available),
            "outdated": [model["id"] for model in available if not is_current(model)],
        }
    )
)
