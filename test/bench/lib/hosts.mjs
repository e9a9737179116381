/**
 * Hosts by what they have: each loads its packages, and makes an app when it is asked to. `dependencies`: all that doorward depends
 * on, with Knex and the driver, which everybody who has doorward has. BENCH_DATABASE: a file that has doorward's tables.
 */
const filename = process.env.BENCH_DATABASE

const database = () => ({ client: 'better-sqlite3', connection: { filename }, useNullAsDefault: true, pool: { min: 1, max: 1 } })
const quiet = { info() {}, warn() {}, error() {} }
const secret = 'an-only-secret-for-measuring-7f3b9a61'

async function hostWithKnex(...names) {
  const [{ default: express }, { default: knex }] = await Promise.all(
    ['express', 'knex', 'better-sqlite3', ...names].map((name) => import(name)),
  )
  return { express, open: () => knex(database()) }
}

export const hosts = {
  async express() {
    const { default: express } = await import('express')
    return () => express()
  },

  async dependencies() {
    const packages = ['cookie-parser', 'passport', 'passport-oauth2', 'jsonwebtoken', 'argon2', 'speakeasy', 'joi', 'undici']
    const { express, open } = await hostWithKnex(...packages)
    return () => {
      open()
      return express()
    }
  },

  async doorward() {
    const { express, open } = await hostWithKnex()
    const { createAuthRouter, createKnexStore } = await import('../../../dist/index.mjs')
    return () => {
      const settings = { jwtSecret: secret, oauthRedirectBaseUrl: 'https://app.example.test', linksInProduction: true }
      return express().use('/auth', createAuthRouter({ settings, store: createKnexStore({ knex: open() }), logger: quiet }))
    }
  },

  async 'better-auth'() {
    const { default: express } = await import('express')
    const { default: Database } = await import('better-sqlite3')
    const { betterAuth } = await import('better-auth')
    const { toNodeHandler } = await import('better-auth/node')
    return async () => {
      const options = { database: new Database(filename), secret, baseURL: 'https://app.example.test', telemetry: { enabled: false } }
      const auth = betterAuth({ ...options, emailAndPassword: { enabled: true } })
      await auth.$context
      return express().all('/api/auth/*splat', toNodeHandler(auth))
    }
  },

  async authjs() {
    const { default: express } = await import('express')
    const { ExpressAuth } = await import('@auth/express')
    const { default: Credentials } = await import('@auth/core/providers/credentials')
    return () => express().use('/auth', ExpressAuth({ secret, trustHost: true, providers: [Credentials({ authorize: async () => null })] }))
  },
}
