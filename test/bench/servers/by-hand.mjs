/**
 * What an expert would write: Express, the driver, the hash behind a gate, node:crypto, and nothing else. Local accounts, a
 * social login with a signed state, a pair of tokens.
 */
import { createHash, createHmac, createSecretKey, randomBytes, timingSafeEqual } from 'node:crypto'
import { availableParallelism } from 'node:os'
import express from 'express'
import jwt from 'jsonwebtoken'
import { createAccounts } from '../lib/accounts.mjs'
import { createHasher } from '../lib/hasher.mjs'
import { serve } from '../lib/serve.mjs'

const provider = process.env.BENCH_PROVIDER
const key = createSecretKey('an-only-secret-for-measuring-7f3b9a61', 'utf8')
const accounts = await createAccounts()
const { hash, verify } = await createHasher({ concurrency: Number(process.env.BENCH_GATE ?? availableParallelism()) })
const nobody = await hash('nobody has this')

const fresh = () => randomBytes(32).toString('base64url')
const sha256 = (text) => createHash('sha256').update(text).digest('hex')
const seal = (state) => createHmac('sha256', key).update(`state:${state}`).digest('base64url')
const refuse = (res, status, code) => void res.status(status).json({ detail: 'refused', code, details: {} })

function isSame(one, other) {
  const [left, right] = [Buffer.from(one), Buffer.from(other)]
  return left.length === right.length && timingSafeEqual(left, right)
}

async function sendPair(res, status, user, method) {
  const refreshToken = fresh()
  await accounts.logIn(user.id, sha256(refreshToken), method)
  const claims = { email: user.email, typ: 'access', amr: [method] }
  const accessToken = jwt.sign(claims, key, { algorithm: 'HS256', subject: user.id, expiresIn: 900 })
  res.status(status).json({ user_id: user.id, access_token: accessToken, refresh_token: refreshToken })
}

function credentialsOf(body) {
  const [email, password] = [body?.email, body?.password]
  if (typeof email !== 'string' || !/^[^@\s]+@[^@\s]+$/.test(email) || typeof password !== 'string' || password.length > 1024) return null
  return { email: email.toLowerCase(), password }
}

async function signUp(req, res) {
  const given = credentialsOf(req.body)
  if (!given || given.password.length < 12) return refuse(res, 422, 'VALIDATION')
  if (await accounts.byEmail(given.email)) return refuse(res, 409, 'EMAIL_TAKEN')
  await sendPair(res, 201, await accounts.insert(given.email, await hash(given.password)), 'pwd')
}

async function logIn(req, res) {
  const given = credentialsOf(req.body)
  if (!given) return refuse(res, 422, 'VALIDATION')
  const user = await accounts.byEmail(given.email)
  const isRight = await verify(user?.hashed_password ?? nobody, given.password)
  if (!user || !isRight || !user.is_active) return refuse(res, 401, 'INVALID_CREDENTIALS')
  await sendPair(res, 200, user, 'pwd')
}

function socialOf(origin) {
  const redirectUri = `${origin}/auth/oauth/stub/callback`
  const client = { client_id: 'client', redirect_uri: redirectUri }

  function begin(_req, res) {
    const state = fresh()
    res.cookie('state', `${state}.${seal(state)}`, { httpOnly: true, sameSite: 'lax', path: '/auth/oauth', maxAge: 600_000 })
    res.redirect(`${provider}/authorize?${new URLSearchParams({ response_type: 'code', ...client, state, scope: 'openid email profile' })}`)
  }

  async function callback(req, res) {
    const [state = '', sealed = ''] = (/(?:^|; )state=([^;]+)/.exec(req.headers.cookie)?.[1] ?? '').split('.')
    res.clearCookie('state', { path: '/auth/oauth' })
    if (!state || !isSame(seal(state), sealed) || !isSame(String(req.query.state), state)) return refuse(res, 401, 'STATE_MISMATCH')
    const profile = await profileOf(String(req.query.code))
    if (!profile) return refuse(res, 502, 'OAUTH_ERROR')
    await sendPair(res, 200, await accounts.byIdentity('stub', profile.sub, profile.email), 'ext')
  }

  async function profileOf(code) {
    const body = new URLSearchParams({ grant_type: 'authorization_code', code, ...client, client_secret: 'secret' })
    const tokens = await fetch(`${provider}/token`, { method: 'POST', body, signal: AbortSignal.timeout(10_000) })
    if (!tokens.ok) return null
    const headers = { authorization: `Bearer ${(await tokens.json()).access_token}` }
    const profile = await fetch(`${provider}/userinfo`, { headers, signal: AbortSignal.timeout(10_000) })
    return profile.ok ? profile.json() : null
  }
  return { begin, callback }
}

await serve((origin) => {
  const { begin, callback } = socialOf(origin)
  return express()
    .use(express.json())
    .get('/ping', (_req, res) => void res.json({ ok: true }))
    .post('/auth/signup', signUp)
    .post('/auth/login', logIn)
    .get('/auth/oauth/stub/login', begin)
    .get('/auth/oauth/stub/callback', callback)
})
