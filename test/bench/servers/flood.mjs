/**
 * Everything of doorward that remembers something in this process, each filled with distinct keys by `GET /fill/:what/:from/:to`.
 * What is a middleware is called as Express would call it; all of it is public API.
 */
import express from 'express'
import jwt from 'jsonwebtoken'
import { serve } from '../lib/serve.mjs'

const { createGuards, createTokenVerifier, idempotency, memoryCounters, rateLimit } = await import('../../../dist/index.mjs')

// Any key of the right size: these guards and the tokens below have it in common.
const { privateKey, publicKey } = (await import('node:crypto')).generateKeyPairSync('ec', { namedCurve: 'P-256' })
const jwtKeys = [{ kid: 'bench', alg: 'ES256', privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }) }]
const guard = createGuards({ settings: { jwtKeys } }).requireAuth()

async function rememberedTokens(number) {
  const iat = Math.floor(Date.now() / 1000)
  const claims = { amr: ['pwd'], email: 'ana@example.test', exp: iat + 3600, iat, sub: `user-${number}`, typ: 'access' }
  const token = jwt.sign(claims, privateKey, { algorithm: 'ES256', keyid: 'bench' })
  const present = () => passed((next) => guard({ headers: { authorization: `Bearer ${token}` } }, {}, next))
  await present()
  await present() // what comes only once is not remembered
}

/** A middleware that lets the request through. */
function passed(run) {
  return new Promise((resolve, reject) => run((refusal) => (refusal ? reject(refusal) : resolve())))
}

function countersOf(counters) {
  return (number) => counters.increment(`login:email:${number}`, 900, 5)
}

const limit = rateLimit({ key: (req) => req.ip })

const jwk = { ...publicKey.export({ format: 'jwk' }), kid: 'known', use: 'sig', alg: 'ES256' }
const httpClient = async () => ({ status: 200, headers: {}, body: JSON.stringify({ keys: [jwk] }) })
const issuer = 'https://id.example.test'
const verifier = createTokenVerifier({ issuer, jwksUri: `${issuer}/jwks`, algorithms: ['ES256'], httpClient })
const [, claims, signature] = jwt.sign({ sub: 'x', iss: issuer }, privateKey, { algorithm: 'ES256', expiresIn: 3600 }).split('.')

async function unknownKid(number) {
  const header = Buffer.from(JSON.stringify({ alg: 'ES256', typ: 'JWT', kid: `kid-${number}` })).toString('base64url')
  const accepted = await verifier.verify(`${header}.${claims}.${signature}`).then(
    () => true,
    () => false,
  )
  if (accepted) throw new Error('a token under an unknown key was accepted')
}

const floods = {
  counters: countersOf(memoryCounters()),
  'rate-limit': (number) =>
    passed((next) => limit({ ip: `10.${number >> 16}.${(number >> 8) & 255}.${number & 255}` }, { setHeader() {} }, next)),
  'remembered-tokens': rememberedTokens,
  'unknown-kids': unknownKid,
}

await serve(() =>
  express()
    .get('/fill/:what/:from/:to', async (req, res) => {
      const { what, from, to } = req.params
      for (let number = Number(from); number < Number(to); number++) await floods[what](number)
      res.json({ ok: true })
    })
    .post('/once', idempotency(), express.json(), (req, res) => void res.status(201).json({ made: req.body })),
)
