#!/usr/bin/env node
// Runs the binary that npm installed for this machine.
const { spawn } = require("child_process");
const { isatty } = require("tty");

const platform = `@graphiti-proxy/${process.platform}-${process.arch}`;
let binary;
try {
  binary = require.resolve(`${platform}/bin/graphiti-proxy${process.platform === "win32" ? ".exe" : ""}`);
} catch {
  console.error(`graphiti-proxy: the package ${platform} is missing; install graphiti-proxy again without --omit=optional, on Linux, macOS or Windows (x64, arm64)`);
  process.exit(1);
}
const child = spawn(binary, process.argv.slice(2), { stdio: "inherit" });
process.on("SIGINT", () => {
  // A terminal sends it to the binary, too; a supervisor does not.
  if (![0, 1, 2].some(isatty)) child.kill("SIGINT");
});
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  console.error(`graphiti-proxy: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (!signal) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
