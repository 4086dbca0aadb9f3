// Accessibility, as axe-core judges it. It is injected through the browser's own
// protocol: the pages' policy refuses scripts that are not theirs.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const source = readFileSync(createRequire(join(process.cwd(), 'here')).resolve('axe-core/axe.min.js'), 'utf8');

// inaccessible returns what axe finds that is serious or critical.
export async function inaccessible(visitor) {
  const cdp = await visitor.context.newCDPSession(visitor.page);
  const run = async (expression) => {
    const r = await cdp.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true });
    if (r.exceptionDetails) throw new Error(`axe: ${r.exceptionDetails.exception?.description ?? r.exceptionDetails.text}`);
    return r.result.value;
  };
  await run(source + ';0');
  const found = await run('axe.run(document, { resultTypes: ["violations"], rules: { "target-size": { enabled: true } } }).then((r) => r.violations)');
  await cdp.detach();
  return found.filter((v) => ['serious', 'critical'].includes(v.impact))
    .map((v) => `axe, ${v.impact}: ${v.help} (${v.id}): ${v.nodes.slice(0, 3).map((n) => `${n.target} ${n.any[0]?.message ?? ''}`).join(' | ')}`);
}
