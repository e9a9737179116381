/**
 * argon2id for the servers that bring none, with the parameters doorward has. At most `concurrency` at once, which is what
 * an expert does: more of them at once than cores only take each other's caches, and libuv's threads from everything else.
 */
const costs = { memoryCost: 19_456, timeCost: 2, parallelism: 1 }

export async function createHasher({ concurrency }) {
  const { default: argon2 } = await import('argon2')
  const run = gate(concurrency)
  return {
    hash: (password) => run(() => argon2.hash(password, { ...costs, type: argon2.argon2id })),
    verify: (hash, password) => run(() => argon2.verify(hash, password)),
  }
}

function gate(places) {
  const waiting = []
  let free = places
  return async (work) => {
    if (free > 0) free--
    else await new Promise((resolve) => waiting.push(resolve))
    try {
      return await work()
    } finally {
      const next = waiting.shift()
      if (next) next()
      else free++
    }
  }
}
