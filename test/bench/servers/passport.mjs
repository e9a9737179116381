/**
 * Passport as in its documentation: passport-local, passport-oauth2 over express-session, and a pair of tokens at the end. Its tokens
 * are signed with a key made once; BENCH_SECRET=text: with the text itself, as jsonwebtoken's documentation has it.
 */
import { createHash, createSecretKey, randomBytes } from 'node:crypto'
import express from 'express'
import session from 'express-session'
import jwt from 'jsonwebtoken'
import passport from 'passport'
import { Strategy as LocalStrategy } from 'passport-local'
import OAuth2Strategy from 'passport-oauth2'
import { createAccounts } from '../lib/accounts.mjs'
import { createHasher } from '../lib/hasher.mjs'
import { serve } from '../lib/serve.mjs'

const secret = 'an-only-secret-for-measuring-7f3b9a61'
const key = process.env.BENCH_SECRET === 'text' ? secret : createSecretKey(secret, 'utf8')
const provider = process.env.BENCH_PROVIDER ?? 'http://127.0.0.1:9'
const accounts = await createAccounts()
// Its documentation gates nothing: libuv's four threads are the only limit.
const { hash, verify } = await createHasher({ concurrency: Number.POSITIVE_INFINITY })
const nobody = await hash('nobody has this')

async function findUser(email, password) {
  const user = await accounts.byEmail(email.toLowerCase())
  const isRight = await verify(user?.hashed_password ?? nobody, password)
  return user && isRight && user.is_active ? user : false
}

function oauth2(origin) {
  const endpoints = { authorizationURL: `${provider}/authorize`, tokenURL: `${provider}/token` }
  const client = { clientID: 'client', clientSecret: 'secret', callbackURL: `${origin}/auth/oauth/stub/callback` }
  const options = { ...endpoints, ...client, state: true, scope: 'openid email profile' }
  const strategy = new OAuth2Strategy(options, async (_access, _refresh, profile, done) => {
    try {
      done(null, await accounts.byIdentity('stub', profile.sub, profile.email))
    } catch (error) {
      done(error)
    }
  })
  strategy._oauth2.useAuthorizationHeaderforGET(true)
  strategy.userProfile = (token, done) =>
    strategy._oauth2.get(`${provider}/userinfo`, token, (error, body) => (error ? done(error) : done(null, JSON.parse(body))))
  return strategy
}

async function sendPair({ user }, res) {
  const refreshToken = randomBytes(32).toString('base64url')
  await accounts.logIn(user.id, createHash('sha256').update(refreshToken).digest('hex'), 'pwd')
  const accessToken = jwt.sign({ email: user.email, typ: 'access' }, key, { algorithm: 'HS256', subject: user.id, expiresIn: 900 })
  res.json({ user_id: user.id, access_token: accessToken, refresh_token: refreshToken })
}

await serve((origin) => {
  passport.use('stub', oauth2(origin))
  passport.use(
    new LocalStrategy({ usernameField: 'email' }, (email, password, done) =>
      findUser(email, password).then((user) => done(null, user), done),
    ),
  )
  const sessions = session({ secret, resave: false, saveUninitialized: false, cookie: { maxAge: 600_000 } })
  return express()
    .use(express.json())
    .get('/ping', (_req, res) => void res.json({ ok: true }))
    .post('/auth/signup', async (req, res) => {
      await accounts.insert(req.body.email, await hash(req.body.password)) // it has no signup: this makes users to measure with
      res.status(201).json({})
    })
    .post('/auth/login', passport.authenticate('local', { session: false }), sendPair)
    .get('/auth/oauth/stub/login', sessions, passport.authenticate('stub'))
    .get('/auth/oauth/stub/callback', sessions, passport.authenticate('stub', { session: false }), sendPair)
    .use((error, _req, res, _next) => void res.status(error.status ?? 500).json({ code: error.name }))
})
