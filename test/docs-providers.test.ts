import { generateKeyPairSync } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import express from 'express'
import type { Knex } from 'knex'
import supertest from 'supertest'
import ts from 'typescript'
import { expect, test } from 'vitest'
import * as doorward from '../src'
import { databases } from './support/databases'
import { docPages } from './support/doc-pages'
import { logTap } from './support/log-tap'

const root = join(import.meta.dirname, '..')
const requireHere = createRequire(import.meta.url)
const pages = ['docs/providers.md', ...docPages().filter((page) => page.startsWith('docs/providers/'))]
const secrets = { AUTH_JWT_SECRET: 'a test secret of forty characters, or so', AUTH_PUBLIC_URL: 'https://app.example.com' }

const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const applePrivateKey = String(privateKey.export({ type: 'pkcs8', format: 'pem' }))
/** What the host has set: an id and a secret of whatever provider. */
const env = new Proxy({}, { get: (_, name) => (name === 'APPLE_PRIVATE_KEY' ? applePrivateKey : `my-${String(name).toLowerCase()}`) })

/** No provider is called here. */
class UncalledOidcClient extends doorward.OidcClient {
  override prepareInBackground(): void {}
}

type CreateAuth = (knex: Knex, mailer: doorward.Mailer) => doorward.AuthRouter

/** The first TypeScript block of a page, as a host has it that set `secrets` alone. */
function firstExample(text: string): CreateAuth {
  const [, code = ''] = /^```ts\n(.*?)^```$/ms.exec(text) ?? []
  const { outputText } = ts.transpileModule(code, { compilerOptions: { module: ts.ModuleKind.CommonJS, esModuleInterop: true } })
  const host = {
    ...doorward,
    OidcClient: UncalledOidcClient,
    settingsFromEnv: () => doorward.settingsFromEnv(secrets),
    createAuthRouter: (options: doorward.AuthRouterOptions) =>
      doorward.createAuthRouter({ ...options, environment: 'production', logger: logTap() }),
  }
  const exports = {} as { createAuth: CreateAuth } // what each first block exports
  const load = (name: string) => (name === 'doorward' ? host : requireHere(name))
  new Function('require', 'exports', 'process', outputText)(load, exports, { env })
  return exports.createAuth
}

test.each(pages)('the first example of %s starts in production as printed, and its button leads to the provider', async (page) => {
  const text = readFileSync(join(root, page), 'utf8')
  const [, button = ''] = /^## (?:Your|The) button$.*?(\/auth\/oauth\/\w+\/login)/ms.exec(text) ?? []
  const [sqlite] = await databases()
  const database = await sqlite?.open({ memory: true })
  if (!database) throw new Error('no database answers')
  try {
    await doorward.createAuthTables(database.knex)
    const auth = firstExample(text)(database.knex, { send: async () => undefined })
    const { headers, status } = await supertest(express().use('/auth', auth)).get(button)
    expect(status).toBe(302)
    const { protocol, searchParams } = new URL(String(headers['location']))
    expect(protocol).toBe('https:')
    expect(searchParams.get('redirect_uri')).toBe(secrets.AUTH_PUBLIC_URL + button.replace(/login$/, 'callback'))
  } finally {
    await database.close()
  }
})
