"""Holds the conversations that it reads from standard input, one in JSON a line, with
an SDK as its documentation has it, tool rounds included, and prints what the
client got as a line of JSON. Importing an SDK takes seconds."""
import json
import sys

SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"], "additionalProperties": False}
FOUND = "It is 42."
settings = dict(api_key="sk-test", max_retries=0, timeout=20)


def chat():
    import openai

    client = openai.OpenAI(base_url=s["base_url"] + "/v1", **settings)
    tools = [{"type": "function", "function": {"name": "search", "description": "Looks up.", "parameters": SCHEMA}}]
    messages = [{"role": "system", "content": s["system"]}]

    def say(text):
        messages.append({"role": "user", "content": text})
        while True:
            if s["stream"]:
                with client.chat.completions.stream(model="m", messages=messages, tools=tools) as stream:
                    m = stream.get_final_completion().choices[0].message
            else:
                m = client.chat.completions.create(model="m", messages=messages, tools=tools).choices[0].message
            calls = [{"id": c.id, "type": "function", "function": {"name": c.function.name, "arguments": c.function.arguments}} for c in m.tool_calls or []]
            messages.append({"role": "assistant", "content": m.content, **({"tool_calls": calls} if calls else {})})
            if not calls:
                return m.content
            messages.extend({"role": "tool", "tool_call_id": c["id"], "content": FOUND} for c in calls)

    return say


def responses():
    import openai

    client = openai.OpenAI(base_url=s["base_url"] + "/v1", **settings)
    tools = [{"type": "function", "name": "search", "description": "Looks up.", "parameters": SCHEMA, "strict": True}]
    history = []

    def say(text):
        history.append({"role": "user", "content": [{"type": "input_text", "text": text}]})
        while True:
            request = dict(model="m", instructions=s["system"], input=history, tools=tools, store=False)
            if s["stream"]:
                with client.responses.stream(**request) as stream:
                    r = stream.get_final_response()
            else:
                r = client.responses.create(**request)
            calls = [o for o in r.output if o.type == "function_call"]
            for o in r.output:
                if o.type == "message":
                    history.append({"role": "assistant", "content": [{"type": "output_text", "text": c.text} for c in o.content]})
                elif o.type == "function_call":
                    history.append({"type": "function_call", "call_id": o.call_id, "name": o.name, "arguments": o.arguments})
                else:
                    history.append(o.model_dump(exclude_none=True))
            if not calls:
                return r.output_text
            history.extend({"type": "function_call_output", "call_id": c.call_id, "output": FOUND} for c in calls)

    return say


def messages():
    import anthropic

    client = anthropic.Anthropic(base_url=s["base_url"], **settings)
    tools = [{"name": "search", "description": "Looks up.", "input_schema": SCHEMA}]
    history = []

    def say(text):
        history.append({"role": "user", "content": text})
        while True:
            request = dict(model="m", max_tokens=2000, thinking={"type": "enabled", "budget_tokens": 1024}, tools=tools, messages=history,
                           system=[{"type": "text", "text": s["system"], "cache_control": {"type": "ephemeral"}}])
            if s["stream"]:
                with client.messages.stream(**request) as stream:
                    m = stream.get_final_message()
            else:
                m = client.messages.create(**request)
            history.append({"role": "assistant", "content": [b.model_dump(exclude_none=True, include={"type", "text", "thinking", "signature", "id", "name", "input"}) for b in m.content]})
            if m.stop_reason != "tool_use":
                return "".join(b.text for b in m.content if b.type == "text")
            history.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": b.id, "content": FOUND} for b in m.content if b.type == "tool_use"]})

    return say


def gemini():
    """Google's API in one of the SDK's chats, which keeps the history and calls
    the tool itself."""
    from google import genai
    from google.genai import types

    def search(q: str) -> str:
        """Looks up."""
        return FOUND

    client = genai.Client(api_key="k-test", http_options=types.HttpOptions(base_url=s["base_url"], timeout=20000))
    chat = client.chats.create(model="m", config=types.GenerateContentConfig(
        system_instruction=s["system"], tools=[search], thinking_config=types.ThinkingConfig(include_thoughts=True)))

    def say(text, client=client):  # which is closed when nothing holds it
        if not s["stream"]:
            return chat.send_message(text).text
        return "".join(p.text for c in chat.send_message_stream(text) for p in c.candidates[0].content.parts if p.text and not p.thought)

    return say


for line in sys.stdin:
    s = json.loads(line)
    say = {"openai chat": chat, "openai responses": responses, "anthropic messages": messages, "google genai": gemini}[s["sdk"]]()
    print(json.dumps({"texts": [say(t) for t in s["turns"]], "miscounted": 0}), flush=True)
