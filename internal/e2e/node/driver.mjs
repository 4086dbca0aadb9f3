// Runs one scenario, read as JSON from standard input, with the openai package
// and prints what the client got as JSON.
import OpenAI from 'openai';
import { readFileSync } from 'node:fs';

const s = JSON.parse(readFileSync(0, 'utf8'));
const client = new OpenAI({ apiKey: 'sk-test', baseURL: s.base_url, maxRetries: 0, timeout: 20000, defaultHeaders: s.headers });
const out = { text: '', tool: '', finish: '', error: '', status: 0, memory: '' };
try {
  if (s.stream) {
    const abort = new AbortController();
    const { data, response } = await client.chat.completions.create({ ...s.request, stream: true }, { signal: abort.signal }).withResponse();
    out.memory = response.headers.get('x-graphiti-memory') ?? '';
    let chunks = 0;
    for await (const c of data) {
      const choice = c.choices[0];
      out.text += choice?.delta?.content ?? '';
      out.tool += choice?.delta?.tool_calls?.[0]?.function?.name ?? '';
      out.finish = choice?.finish_reason ?? out.finish;
      if (s.abort_after && ++chunks === s.abort_after) abort.abort();
    }
  } else {
    const { data, response } = await client.chat.completions.create(s.request).withResponse();
    out.memory = response.headers.get('x-graphiti-memory') ?? '';
    out.text = data.choices[0].message.content ?? '';
    out.tool = data.choices[0].message.tool_calls?.[0]?.function?.name ?? '';
    out.finish = data.choices[0].finish_reason;
  }
} catch (e) {
  out.error = e?.constructor?.name ?? String(e);
  out.status = e?.status ?? 0;
}
console.log(JSON.stringify(out));
process.exit(0);
