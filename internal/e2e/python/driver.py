"""Runs one scenario, read as JSON from standard input, with the openai package
and prints what the client got as JSON."""
import json
import sys

import openai

s = json.load(sys.stdin)
client = openai.OpenAI(api_key="sk-test", base_url=s["base_url"], max_retries=0, timeout=20, default_headers=s.get("headers"))
out = {"text": "", "tool": "", "finish": "", "error": "", "status": 0, "memory": ""}
try:
    raw = client.chat.completions.with_raw_response.create(**s["request"], stream=bool(s.get("stream")))
    out["memory"] = raw.headers.get("x-graphiti-memory", "")
    if s.get("stream"):
        chunks = 0
        stream = raw.parse()
        for c in stream:
            if c.choices:
                d = c.choices[0]
                out["text"] += d.delta.content or ""
                if d.delta.tool_calls and d.delta.tool_calls[0].function:
                    out["tool"] += d.delta.tool_calls[0].function.name or ""
                out["finish"] = d.finish_reason or out["finish"]
            chunks += 1
            if chunks == s.get("abort_after"):
                stream.close()
                out["error"] = "closed"
                break
    else:
        c = raw.parse().choices[0]
        out["text"], out["finish"] = c.message.content or "", c.finish_reason
        if c.message.tool_calls:
            out["tool"] = c.message.tool_calls[0].function.name
except Exception as e:
    out["error"], out["status"] = type(e).__name__, getattr(e, "status_code", 0) or 0
print(json.dumps(out))
