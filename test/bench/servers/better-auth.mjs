/**
 * better-auth on Express as its documentation says, with a guarded route. BENCH_HASH=argon2: that instead of its own scrypt;
 * BENCH_COOKIE_CACHE=1: sessions are read from a signed cookie.
 */
import { betterAuth } from 'better-auth'
import { getMigrations } from 'better-auth/db/migration'
import { fromNodeHeaders, toNodeHandler } from 'better-auth/node'
import { genericOAuth } from 'better-auth/plugins/generic-oauth'
import express from 'express'
import { createHasher } from '../lib/hasher.mjs'
import { openSqlite } from '../lib/open-database.mjs'
import { serve } from '../lib/serve.mjs'

const { BENCH_PROVIDER: provider, BENCH_HASH, BENCH_COOKIE_CACHE } = process.env

await serve(async (origin) => {
  const options = {
    baseURL: origin,
    secret: 'an-only-secret-for-measuring-7f3b9a61',
    database: openSqlite(),
    trustedOrigins: [origin],
    telemetry: { enabled: false },
    logger: { disabled: true },
    rateLimit: { enabled: false },
    emailAndPassword: { enabled: true, ...(BENCH_HASH && { password: await passwordOf() }) },
    session: BENCH_COOKIE_CACHE ? { cookieCache: { enabled: true, maxAge: 3600 } } : {},
    plugins: provider ? [genericOAuth({ config: [configOf(provider)] })] : [],
  }
  await (await getMigrations(options)).runMigrations()
  const auth = betterAuth(options)
  return express()
    .get('/ping', (_req, res) => void res.json({ ok: true }))
    .get('/protected', async (req, res) => {
      const session = await auth.api.getSession({ headers: fromNodeHeaders(req.headers) })
      if (!session) return void res.status(401).json({ code: 'UNAUTHORIZED' })
      res.json({ ok: true, sub: session.user.id })
    })
    .all('/api/auth/*splat', toNodeHandler(auth))
})

async function passwordOf() {
  const { hash, verify } = await createHasher({ concurrency: Number.POSITIVE_INFINITY })
  return { hash, verify: (given) => verify(given.hash, given.password) }
}

function configOf(url) {
  const [authorizationUrl, tokenUrl, userInfoUrl] = ['authorize', 'token', 'userinfo'].map((path) => `${url}/${path}`)
  const client = { clientId: 'client', clientSecret: 'secret', scopes: ['openid', 'email', 'profile'] }
  return { providerId: 'stub', ...client, authorizationUrl, tokenUrl, userInfoUrl }
}
