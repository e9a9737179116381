/** One guarded route. BENCH_GUARD says by whom, BENCH_ALGORITHM and BENCH_KEYS with what; every key is made once. */
import { createPublicKey, createSecretKey } from 'node:crypto'
import express from 'express'
import { serve } from '../lib/serve.mjs'

const algorithm = process.env.BENCH_ALGORITHM
const { jwtSecret, secret, privateKey, issuer, audience } = JSON.parse(process.env.BENCH_KEYS)
const isSymmetric = algorithm === 'HS256'
const key = isSymmetric ? createSecretKey(secret, 'base64') : createPublicKey(privateKey)
const keySet = isSymmetric ? [] : [{ ...key.export({ format: 'jwk' }), kid: 'bench', use: 'sig', alg: algorithm }]

const guards = {
  none: () => (_req, _res, next) => next(),

  async doorward() {
    const { createGuards } = await import('../../../dist/index.mjs')
    const settings = isSymmetric ? { jwtSecret } : { jwtKeys: [{ kid: 'bench', alg: algorithm, privateKey }] }
    return createGuards({ settings }).requireAuth()
  },

  async jsonwebtoken() {
    const { default: jwt } = await import('jsonwebtoken')
    return byHand((token) => jwt.verify(token, key, { algorithms: [algorithm] }))
  },

  async jose() {
    const { jwtVerify } = await import('jose')
    return byHandLater(async (token) => (await jwtVerify(token, key, { algorithms: [algorithm] })).payload)
  },

  async 'express-jwt'() {
    const { expressjwt } = await import('express-jwt')
    return expressjwt({ secret: key, algorithms: [algorithm] })
  },

  async 'passport-jwt'() {
    const { default: passport } = await import('passport')
    const { ExtractJwt, Strategy } = (await import('passport-jwt')).default
    const options = { jwtFromRequest: ExtractJwt.fromAuthHeaderAsBearerToken(), secretOrKey: key, algorithms: [algorithm] }
    passport.use(new Strategy(options, (claims, done) => done(null, claims)))
    return passport.authenticate('jwt', { session: false })
  },

  /** The one that takes its keys from where the tokens come from; once, as they are always the same. */
  async 'express-oauth2-jwt-bearer'(origin) {
    const { auth } = await import('express-oauth2-jwt-bearer')
    return auth({ issuer, audience, jwksUri: `${origin}/jwks`, tokenSigningAlg: algorithm })
  },
}

/** As most people would write it. */
function byHand(verify) {
  return (req, res, next) => {
    const header = req.headers.authorization
    if (!header?.startsWith('Bearer ')) return void res.status(401).json({ code: 'UNAUTHORIZED' })
    try {
      req.auth = verify(header.slice(7))
    } catch {
      return void res.status(401).json({ code: 'INVALID_TOKEN' })
    }
    if (req.auth.typ !== 'access') return void res.status(401).json({ code: 'INVALID_TOKEN' })
    next()
  }
}

function byHandLater(verify) {
  return async (req, res, next) => {
    const header = req.headers.authorization
    if (!header?.startsWith('Bearer ')) return void res.status(401).json({ code: 'UNAUTHORIZED' })
    try {
      req.auth = await verify(header.slice(7))
    } catch {
      return void res.status(401).json({ code: 'INVALID_TOKEN' })
    }
    if (req.auth.typ !== 'access') return void res.status(401).json({ code: 'INVALID_TOKEN' })
    next()
  }
}

await serve(async (origin) => {
  const guard = await guards[process.env.BENCH_GUARD](origin)
  return express()
    .get('/jwks', (_req, res) => void res.json({ keys: keySet }))
    .get('/protected', guard, (_req, res) => void res.json({ ok: true }))
    .use((error, _req, res, _next) => void res.status(error.status ?? 500).json({ code: error.code }))
})
