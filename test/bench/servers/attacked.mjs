/**
 * doorward from its build with the defaults of production and every rate limit on, behind a proxy that names the client: what the attacks of
 * `attacks.mts` are played against. BENCH_PROVIDER: the options of its provider's client, as JSON. `/reports` is an API of another
 * issuer, which only verifies; `/refusals` counts the audit rows that refusals have left.
 */
import express from 'express'
import { openKnex } from '../lib/open-database.mjs'
import { serve } from '../lib/serve.mjs'

const { auditLog, createAuthRouter, createAuthTables, createGuards, createKnexStore, errorHandler, getAuth, OidcClient } = await import(
  '../../../dist/index.mjs'
)

const provider = JSON.parse(process.env.BENCH_PROVIDER)
const logger = { info() {}, warn() {}, error() {} } // an attacker's requests fail

await serve(async (origin) => {
  const knex = openKnex()
  await createAuthTables(knex)
  const auth = createAuthRouter({
    settings: {
      jwtSecret: 'an-only-secret-for-measuring-7f3b9a61',
      oauthRedirectBaseUrl: origin,
      oauthEnabled: true,
      autoActivate: true,
      tokenDelivery: 'cookie',
      backendLinks: true,
    },
    store: createKnexStore({ knex }),
    providers: { corp: new OidcClient(provider) },
    mailer: { async send() {} },
    logger,
  })
  const log = auditLog(knex, { logger })
  log.watch(auth.events)
  const api = createGuards({ settings: { jwksUri: provider.jwksUri, algorithms: ['RS256'] }, logger })
  return express()
    .set('trust proxy', 'loopback')
    .get('/reports', api.requireAuth(), (req, res) => void res.json({ for: getAuth(req).sub }))
    .get('/refusals', async (_req, res) => {
      await log.flush()
      const [{ rows }] = await knex('auth_audit_log').whereIn('name', ['login.failed', 'provider.failed', 'throttled']).count({ rows: '*' })
      res.json({ rows, dropped: log.dropped })
    })
    .use('/auth', auth)
    .use(errorHandler())
})
