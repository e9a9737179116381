/**
 * What createTokenVerifier costs beside the signature: an RS256 access token with the key in the cache, against a bare
 * `jsonwebtoken.verify` on a prepared key. Rounds of both, interleaved; prints medians and the median of the ratios, and
 * fails above 1.3. `npm run bench -- verifier [rounds]`, at a quiet moment.
 */
import { generateKeyPairSync } from 'node:crypto'
import jwt from 'jsonwebtoken'
import { createTokenVerifier } from '../../src'

const rounds = Number(process.argv[2] ?? 200)
const perRound = 100
const mostRatio = 1.3

async function main(): Promise<number> {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const [issuer, kid, algorithms] = ['https://id.example.test', 'key-1', ['RS256'] as const]
  const claims = { azp: 'my-app', aud: 'account', scope: 'openid email profile', email: 'ana@example.test', typ: 'Bearer' }
  const token = jwt.sign(claims, privateKey, { algorithm: 'RS256', keyid: kid, issuer, subject: 'subject-1', expiresIn: 3_600 })
  const keys = JSON.stringify({ keys: [{ ...publicKey.export({ format: 'jwk' }), kid, use: 'sig', alg: 'RS256' }] })
  const httpClient = async () => ({ status: 200, headers: {}, body: keys })
  const verifier = createTokenVerifier({ issuer, jwksUri: `${issuer}/jwks`, algorithms, httpClient })
  // Both in an async function: what a caller awaits either way.
  const ours = () => verifier.verify(token)
  const bare = async () => jwt.verify(token, publicKey, { algorithms: [...algorithms], issuer })

  const times: { ours: number; bare: number }[] = []
  for (let round = -20; round < rounds; round += 1) {
    const isOursFirst = round % 2 === 0
    const first = await timeOf(isOursFirst ? ours : bare)
    const second = await timeOf(isOursFirst ? bare : ours)
    if (round >= 0) times.push(isOursFirst ? { ours: first, bare: second } : { ours: second, bare: first })
  }
  const ratio = median(times.map((time) => time.ours / time.bare))
  const micros = (kind: 'ours' | 'bare') => (median(times.map((time) => time[kind])) * 1_000).toFixed(1)
  console.log(`verifier ${micros('ours')} µs, jsonwebtoken ${micros('bare')} µs, ratio ${ratio.toFixed(3)} (at most ${mostRatio})`)
  return ratio <= mostRatio ? 0 : 1
}

/** Milliseconds of one verification, over a round of them. */
async function timeOf(verify: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  for (let call = 0; call < perRound; call += 1) await verify()
  return (performance.now() - start) / perRound
}

function median(values: number[]): number {
  return values.toSorted((left, right) => left - right)[Math.floor(values.length / 2)] ?? Number.NaN
}

process.exitCode = await main()
