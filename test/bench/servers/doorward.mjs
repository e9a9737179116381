/**
 * doorward from its build, as in its documentation: local accounts, one social provider where BENCH_PROVIDER names one, a
 * guarded route, a host's own route. BENCH_KNEX_ON: on a pool of the app. BENCH_DELIVERY: its `tokenDelivery`. BENCH_GRID: its `timingGridMilliseconds`. Budgets are off, because
 * the load comes from one address.
 */
import { createRequire } from 'node:module'
import express from 'express'
import { openAppPool, openKnex } from '../lib/open-database.mjs'
import { serve } from '../lib/serve.mjs'

// BENCH_HASH=argon2: as where the host did not install the optional package.
if (process.env.BENCH_HASH === 'argon2') hide('@node-rs/argon2')
const { createAuthRouter, createAuthTables, createKnexStore, errorHandler, getAuth, knexOn, OidcClient } = await import(
  '../../../dist/index.mjs'
)

await serve(async (origin) => {
  const knex = process.env.BENCH_KNEX_ON ? knexOn(openAppPool()) : openKnex()
  await createAuthTables(knex)
  const provider = process.env.BENCH_PROVIDER
  const auth = createAuthRouter({
    settings: {
      jwtSecret: 'an-only-secret-for-measuring-7f3b9a61',
      oauthRedirectBaseUrl: origin,
      autoActivate: true,
      oauthEnabled: provider !== undefined,
      // Plain http on the loopback, where a browser's rules are not what is measured.
      cookieSecure: false,
      linksInProduction: true,
      tokenDelivery: process.env.BENCH_DELIVERY ?? 'bearer',
      ...(process.env.BENCH_GRID && { timingGridMilliseconds: Number(process.env.BENCH_GRID) }),
    },
    store: createKnexStore({ knex }),
    ...(provider && { providers: { stub: clientOf(provider) } }),
    throttle: { login: false, routes: false, signup: false },
    logger: { info() {}, warn() {}, error: (fields, message) => console.error(message, fields) },
  })
  return express()
    .get('/ping', (_req, res) => void res.json({ ok: true }))
    .get('/protected', auth.guards.requireAuth(), (req, res) => void res.json({ ok: true, sub: getAuth(req).sub }))
    .use('/auth', auth)
    .use(errorHandler())
})

function clientOf(provider) {
  const [authorizeUrl, tokenUrl, userinfoUrl] = ['authorize', 'token', 'userinfo'].map((path) => `${provider}/${path}`)
  return new OidcClient({ clientId: 'client', clientSecret: 'secret', authorizeUrl, tokenUrl, userinfoUrl })
}

/** Requiring it then fails as it does where it was never installed. */
function hide(name) {
  const Module = createRequire(import.meta.url)('node:module')
  const find = Module._resolveFilename
  Module._resolveFilename = function (request, ...rest) {
    if (request !== name) return find.call(this, request, ...rest)
    throw Object.assign(new Error(`Cannot find module '${name}'`), { code: 'MODULE_NOT_FOUND' })
  }
}
