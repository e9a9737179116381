/** The speed of a password hash with nothing around it: `GET /?milliseconds=1000` verifies, 64 in flight, and says how many. */
import { serve } from '../lib/serve.mjs'

const password = 'a quiet harbour in winter'
const costs = { memoryCost: 19_456, timeCost: 2, parallelism: 1 }

const engines = {
  async argon2() {
    const { default: argon2 } = await import('argon2')
    return { hash: () => argon2.hash(password, { ...costs, type: argon2.argon2id }), verify: (hash) => argon2.verify(hash, password) }
  },
  async '@node-rs/argon2'() {
    const { hash, verify } = await import('@node-rs/argon2')
    return { hash: () => hash(password, { ...costs, algorithm: 2 }), verify: (stored) => verify(stored, password) }
  },
  async scrypt() {
    const { hashPassword, verifyPassword } = await import('better-auth/crypto')
    return { hash: () => hashPassword(password), verify: (hash) => verifyPassword({ hash, password }) }
  },
}

const { hash, verify } = await engines[process.env.BENCH_ENGINE]()
const stored = await hash()

async function measure(milliseconds) {
  const begun = performance.now()
  let verified = 0
  const one = async () => {
    while (performance.now() - begun < milliseconds) {
      if (!(await verify(stored))) throw new Error('the right password was refused')
      verified++
    }
  }
  await Promise.all(Array.from({ length: 64 }, one))
  return { verified, perSecond: verified / ((performance.now() - begun) / 1000) }
}

await serve(() => async (req, res) => {
  const measured = await measure(Number(new URL(req.url, 'http://bench').searchParams.get('milliseconds')))
  const body = JSON.stringify(measured)
  res.writeHead(200, { 'Content-Length': body.length }).end(body)
})
