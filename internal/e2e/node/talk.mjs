// Holds the conversations that it reads from standard input, one in JSON a line, with an
// SDK as its documentation has it, tool rounds included, and prints what the client got as
// a line of JSON. Importing the SDKs takes seconds.
import OpenAI from 'openai';
import Anthropic from '@anthropic-ai/sdk';
import { generateText, streamText, tool, stepCountIs } from 'ai';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogleGenerativeAI } from '@ai-sdk/google';
import { GoogleGenAI } from '@google/genai';
import { z } from 'zod';
import { createInterface } from 'node:readline';

globalThis.AI_SDK_LOG_WARNINGS = false;

let s, v1; // the conversation, and its base URL
let miscounted;
const settings = { apiKey: 'sk-test', maxRetries: 0, timeout: 20000 };
const schema = { type: 'object', properties: { q: { type: 'string' } }, required: ['q'], additionalProperties: false };
const found = 'It is 42.';

// chat talks Chat Completions.
async function chat() {
  const client = new OpenAI({ ...settings, baseURL: v1 });
  const messages = [{ role: 'system', content: s.system }];
  const tools = [{ type: 'function', function: { name: 'search', description: 'Looks up.', parameters: schema } }];
  return async (text) => {
    messages.push({ role: 'user', content: text });
    for (;;) {
      let m;
      if (s.stream) m = (await client.chat.completions.stream({ model: 'm', messages, tools }).finalChatCompletion()).choices[0].message;
      else m = (await client.chat.completions.create({ model: 'm', messages, tools })).choices[0].message;
      const calls = m.tool_calls ?? [];
      messages.push({ role: 'assistant', content: m.content, ...(calls.length ? { tool_calls: calls.map(({ id, type, function: f }) => ({ id, type, function: { name: f.name, arguments: f.arguments } })) } : {}) });
      if (!calls.length) return m.content;
      for (const c of calls) messages.push({ role: 'tool', tool_call_id: c.id, content: found });
    }
  };
}

// responses talks the Responses API; stored leaves the history to the server.
async function responses(stored) {
  const client = new OpenAI({ ...settings, baseURL: v1 });
  const tools = [{ type: 'function', name: 'search', description: 'Looks up.', parameters: schema, strict: true }];
  let input = [], previous;
  return async (text) => {
    input.push({ role: 'user', content: text });
    for (;;) {
      const request = { model: 'm', instructions: s.system, input, tools, store: stored, ...(stored && previous ? { previous_response_id: previous } : {}) };
      const r = s.stream ? await client.responses.stream(request).finalResponse() : await client.responses.create(request);
      previous = r.id;
      const plain = r.output.map((o) => { const { parsed_arguments, ...rest } = o; return rest; });
      input = stored ? [] : [...input, ...plain.map((o) => o.type === 'message' ? { role: 'assistant', content: o.content.map(({ type, text }) => ({ type, text })) } : o)];
      const calls = r.output.filter((o) => o.type === 'function_call');
      if (!calls.length) return r.output_text ?? r.output.flatMap((o) => o.content ?? []).map((c) => c.text).join('');
      for (const c of calls) input.push({ type: 'function_call_output', call_id: c.call_id, output: found });
    }
  };
}

// messages talks Anthropic's Messages API, with thinking.
async function messages() {
  const client = new Anthropic({ ...settings, baseURL: s.base_url });
  const history = [];
  const tools = [{ name: 'search', description: 'Looks up.', input_schema: schema }];
  return async (text) => {
    history.push({ role: 'user', content: text });
    for (;;) {
      const request = { model: 'm', max_tokens: 2000, thinking: { type: 'enabled', budget_tokens: 1024 }, tools, messages: history,
        system: [{ type: 'text', text: s.system, cache_control: { type: 'ephemeral' } }] };
      const { input_tokens: counted } = await client.messages.countTokens({ ...request, max_tokens: undefined });
      const m = s.stream ? await client.messages.stream(request).finalMessage() : await client.messages.create(request);
      if (m.usage.input_tokens !== counted) miscounted++;
      history.push({ role: 'assistant', content: m.content });
      if (m.stop_reason !== 'tool_use') return m.content.filter((b) => b.type === 'text').map((b) => b.text).join('');
      history.push({ role: 'user', content: m.content.filter((b) => b.type === 'tool_use').map((b) => ({ type: 'tool_result', tool_use_id: b.id, content: found })) });
    }
  };
}

// gemini talks Google's API in one of the SDK's chats, which keeps the history,
// with thoughts.
async function gemini() {
  const ai = new GoogleGenAI({ apiKey: 'k-test', httpOptions: { baseUrl: s.base_url, timeout: 20000 } });
  const tools = [{ functionDeclarations: [{ name: 'search', description: 'Looks up.', parametersJsonSchema: schema }] }];
  const chat = ai.chats.create({ model: 'm', config: { systemInstruction: s.system, tools, thinkingConfig: { includeThoughts: true } } });
  return async (text) => {
    for (let message = text; ;) {
      const pieces = s.stream ? await chat.sendMessageStream({ message }) : [await chat.sendMessage({ message })];
      const calls = [];
      let said = '';
      for await (const p of pieces) {
        calls.push(...(p.functionCalls ?? []));
        for (const part of p.candidates[0].content.parts) if (part.text && !part.thought) said += part.text;
      }
      if (!calls.length) return said;
      message = calls.map((c) => ({ functionResponse: { id: c.id, name: c.name, response: { output: found } } }));
    }
  };
}

// vercel talks with the AI SDK, through one of its providers.
async function vercel(model) {
  const history = [];
  const tools = { search: tool({ description: 'Looks up.', inputSchema: z.object({ q: z.string() }), execute: async () => found }) };
  return async (text) => {
    history.push({ role: 'user', content: text });
    const request = { model, system: s.system, messages: history, tools, stopWhen: stepCountIs(5), maxRetries: 0 };
    const r = s.stream ? streamText(request) : await generateText(request);
    const said = await r.text;
    history.push(...(await r.response).messages);
    return said;
  };
}

const sdks = {
  'openai chat': chat,
  'openai responses': () => responses(false),
  'openai responses, stored': () => responses(true),
  'anthropic messages': messages,
  'google genai': gemini,
  'ai, openai-compatible': () => vercel(createOpenAICompatible({ name: 'x', baseURL: v1, apiKey: 'sk-test' })('m')),
  'ai, openai': () => vercel(createOpenAI({ baseURL: v1, apiKey: 'sk-test' })('m')),
  'ai, anthropic': () => vercel(createAnthropic({ baseURL: v1, apiKey: 'sk-test' })('m')),
  'ai, google': () => vercel(createGoogleGenerativeAI({ baseURL: s.base_url + '/v1beta', apiKey: 'k-test' })('m')),
};

for await (const line of createInterface({ input: process.stdin })) {
  s = JSON.parse(line);
  v1 = s.base_url + '/v1';
  miscounted = 0;
  const say = await sdks[s.sdk]();
  const texts = [];
  for (const t of s.turns) texts.push(await say(t));
  console.log(JSON.stringify({ texts, miscounted }));
}
process.exit(0);
