/** Auth.js on Express: its encrypted session cookie, the Credentials provider over argon2id, one social provider. */
import Credentials from '@auth/core/providers/credentials'
import { ExpressAuth, getSession } from '@auth/express'
import express from 'express'
import { createAccounts } from '../lib/accounts.mjs'
import { createHasher } from '../lib/hasher.mjs'
import { serve } from '../lib/serve.mjs'

const provider = process.env.BENCH_PROVIDER

await serve(async () => {
  const accounts = await createAccounts()
  const { hash, verify } = await createHasher({ concurrency: Number.POSITIVE_INFINITY })
  const nobody = await hash('nobody has this')
  const credentials = Credentials({
    credentials: { email: {}, password: {} },
    async authorize({ email, password }) {
      const user = await accounts.byEmail(String(email).toLowerCase())
      const isRight = await verify(user?.hashed_password ?? nobody, String(password))
      return user && isRight ? { id: user.id, email: user.email } : null
    },
  })
  const config = {
    secret: 'an-only-secret-for-measuring-7f3b9a61',
    trustHost: true,
    basePath: '/auth',
    session: { strategy: 'jwt' },
    logger: { error() {}, warn() {}, debug() {} },
    providers: provider ? [credentials, socialOf(provider)] : [credentials],
    callbacks: {
      async signIn({ account, profile }) {
        if (account.provider === 'stub') await accounts.byIdentity('stub', profile.sub, profile.email)
        return true
      },
      session({ session, token }) {
        session.user.id = token.sub
        return session
      },
    },
  }
  return express()
    .set('trust proxy', true)
    .get('/ping', (_req, res) => void res.json({ ok: true }))
    .post('/signup', express.json(), async (req, res) => {
      await accounts.insert(req.body.email, await hash(req.body.password)) // it has no signup: this makes users to measure with
      res.status(201).json({})
    })
    .get('/protected', async (req, res) => {
      const session = await getSession(req, config)
      if (!session) return void res.status(401).json({ code: 'UNAUTHORIZED' })
      res.json({ ok: true, sub: session.user.id })
    })
    .use('/auth', ExpressAuth(config))
})

function socialOf(issuer) {
  const authorization = { url: `${issuer}/authorize`, params: { scope: 'openid email profile' } }
  const endpoints = { issuer, authorization, token: `${issuer}/token`, userinfo: `${issuer}/userinfo` }
  const client = { clientId: 'client', clientSecret: 'secret', checks: ['state'] }
  return { id: 'stub', name: 'Stub', type: 'oauth', ...client, ...endpoints, profile: ({ sub, email, name }) => ({ id: sub, email, name }) }
}
