// Functions that OmniRoute 3.7.9 calls and the Node versions that it declares may lack.
for (const name of ["node:util", "node:worker_threads"]) require(name).markAsUncloneable ??= () => {};
Promise.withResolvers ??= () => {
  const all = {};
  all.promise = new Promise((resolve, reject) => Object.assign(all, { resolve, reject }));
  return all;
};
