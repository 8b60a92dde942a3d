// Runs the verifier, a WebAssembly program for WASI: text in, text out, and nothing else of the world.

const SUCCESS = 0;
const BAD_FILE = 8;
const NOT_HERE = 52;

/** Checks a receipt against keys; resolves to what the verifier says. */
export async function verifyReceipt(keys, receipt) {
  const response = await fetch("/page/verifier.wasm");
  if (!response.ok) {
    return { verified: false, fault: "this server was built without the verifier for browsers; use `efface verify`" };
  }
  const module = await WebAssembly.compile(await response.arrayBuffer());
  // Keys, one a line; an empty line; the receipt.
  const lines = keys.split("\n").map((line) => line.trim()).filter((line) => line !== "");
  const question = new Blob([`${lines.join("\n")}\n\n`, receipt]);
  return JSON.parse(await run(module, new Uint8Array(await question.arrayBuffer())));
}

class ProgramEnd extends Error {}

async function run(module, bytes) {
  let read = 0;
  let output = "";
  const decoder = new TextDecoder();
  let memory;
  const view = () => new DataView(memory.buffer);
  // Buffers of a call: pairs of an address and a length.
  const buffers = (list, count) =>
    Array.from({ length: count }, (_, at) => {
      const place = list + 8 * at;
      return new Uint8Array(memory.buffer, view().getUint32(place, true), view().getUint32(place + 4, true));
    });
  const system = {
    fd_read(file, list, count, done) {
      if (file !== 0) return BAD_FILE;
      let total = 0;
      for (const buffer of buffers(list, count)) {
        const part = bytes.subarray(read, read + buffer.length);
        buffer.set(part);
        read += part.length;
        total += part.length;
      }
      view().setUint32(done, total, true);
      return SUCCESS;
    },
    fd_write(file, list, count, done) {
      if (file !== 1 && file !== 2) return BAD_FILE;
      let total = 0;
      for (const buffer of buffers(list, count)) {
        if (file === 1) output += decoder.decode(buffer, { stream: true });
        total += buffer.length;
      }
      view().setUint32(done, total, true);
      return SUCCESS;
    },
    environ_sizes_get(count, size) {
      view().setUint32(count, 0, true);
      view().setUint32(size, 0, true);
      return SUCCESS;
    },
    environ_get: () => SUCCESS,
    random_get(place, length) {
      crypto.getRandomValues(new Uint8Array(memory.buffer, place, length));
      return SUCCESS;
    },
    proc_exit() {
      throw new ProgramEnd();
    },
  };
  // Whatever else the program may ask for does not exist here.
  const absent = new Proxy(system, { get: (target, name) => target[name] ?? (() => NOT_HERE), has: () => true });
  const imports = {};
  for (const { module: from, name } of WebAssembly.Module.imports(module)) {
    imports[from] ??= {};
    imports[from][name] = absent[name];
  }
  const program = await WebAssembly.instantiate(module, imports);
  memory = program.exports.memory;
  try {
    program.exports._start();
  } catch (end) {
    if (!(end instanceof ProgramEnd)) throw end;
  }
  return output;
}
