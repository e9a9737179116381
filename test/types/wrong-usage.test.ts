import { join } from 'node:path'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'
import { diagnosticsOf, programOf } from '../support/compile'

/** What a developer gets wrong on the first day, and what the compiler says of it. Each usage is a file of its own. */

const preamble = `
import {
  createAuthRouter, createGuards, createKnexStore, bcryptHasher, getUser, settingsFromEnv, smtpMailer, GoogleClient,
  type AuthRouter, type AuthStore, type EnvSettings, type RouterSettings, type SettingsInput,
} from 'doorward'
import type { Request } from 'express'
import type { Knex } from 'knex'
declare const knex: Knex, store: AuthStore, auth: AuthRouter, req: Request
const jwtSecret = 'secret', env = { NAME: '1' }
export const used = [
`

/** The usage, and what the message names. */
const wrong: readonly (readonly [string, RegExp])[] = [
  ['createAuthRouter({ store, settings: { jwtSecret, cookieSecured: true } })', /'cookieSecured'.*Did you mean.*'cookieSecure'/],
  ['createAuthRouter({ store, jwtSecret })', /'jwtSecret' does not exist|'settings' is missing/],
  ['createAuthRouter({ store, settings: { jwtSecret }, tokenDelivery: "cookie" })', /'tokenDelivery' does not exist/],
  ["createAuthRouter({ store, settings: { jwtSecret, tokenDelivery: 'cookies' } })", /"cookies".*"bearer" \| "cookie" \| "both"/],
  ["createAuthRouter({ store, settings: { jwtSecret, accessTokenTtlSeconds: '15m' } })", /'string' is not assignable to type 'number/],
  ['createAuthRouter({ store, settings: { jwtSecret, accessTokenTtlSeconds: env.NAME } })', /'string' is not assignable to type 'number/],
  ["createAuthRouter({ store, settings: { jwtSecret, cookieSecure: 'yes' } })", /'string' is not assignable to type 'boolean/],
  ["createAuthRouter({ store, settings: { jwtSecret, cookieSamesite: 'Lax' } })", /"Lax"/],
  ['createAuthRouter({ store, settings: {} })', /'jwtSecret' is missing/],
  ['createAuthRouter({ settings: { jwtSecret } })', /'store' is missing/],
  ['createAuthRouter({ settings: { jwtSecret }, store: knex })', /is missing.*'AuthStore'.*users, userTokens/],
  ["createKnexStore({ knex, users: { columns: { mail: 'email' } } })", /'mail' does not exist in type 'UserColumnMap'/],
  [
    "createKnexStore({ knex, identities: { columns: { user_id: 'userId' } } })",
    /'user_id' does not exist in type 'ColumnMap<IdentityRecord>'/,
  ],
  ['getUser(req).firstName', /'firstName' does not exist on type 'PublicUser/],
  ["new GoogleClient({ clientID: 'id', clientSecret: 'secret' })", /Did you mean.*'clientId'/],
  ["auth.service.login({ email: 'a', password: 'b' })", /Did you mean 'logIn'/],
  ["auth.events.on('logged-in', () => {})", /"logged-in"/],
  [
    'createAuthRouter({ store, settings: { jwtSecret }, throttle: { login: 5 } })',
    /'number' is not assignable to type 'SubjectBudgetsInput/,
  ],
  ['createAuthRouter({ store, settings: { jwtSecret }, passwordHasher: bcryptHasher })', /PasswordHasher/],
  [
    "createAuthRouter({ store, settings: { jwtSecret }, providers: [new GoogleClient({ clientId: 'a', clientSecret: 'b' })] })",
    /GoogleClient\[\]/,
  ],
  ["createAuthRouter({ store, settings: { jwtSecret }, environment: 'prod' })", /"prod"/],
  ["smtpMailer({ url: 'smtp://localhost' })", /'from' is missing/],
  ['createAuthRouter({ store, settings: { jwtSecret: 1 } })', /'number' is not assignable/],
  ["{ accessTokenTtlSeconds: '900' } satisfies EnvSettings", /'string' is not assignable to type 'EnvText/],
]

const right: readonly string[] = [
  'createAuthRouter({ store, settings: settingsFromEnv() })',
  "createAuthRouter({ store, settings: { ...settingsFromEnv(), tokenDelivery: 'cookie', accessTokenTtlSeconds: 900 } })",
  'createAuthRouter({ store, settings: { jwtSecret, mfaIssuer: null, accessTokenTtlSeconds: undefined, trustedOrigins: [] } })',
  "createAuthRouter({ store, settings: { jwtSecret: [jwtSecret, 'older'], publicUrl: env.NAME } })",
  'createAuthRouter({ store, settings: { jwtSecret: process.env.AUTH_JWT_SECRET } })',
  'settingsFromEnv() satisfies EnvSettings',
  '{ ...settingsFromEnv(), cookieSecure: false } satisfies RouterSettings',
  "{ jwtSecret, tokenDelivery: 'both' } satisfies SettingsInput",
  "createGuards({ settings: { jwksUri: 'https://id.example.com/jwks.json' } })",
  "createGuards({ settings: { ...settingsFromEnv(), jwtSecret: undefined, jwksUri: 'https://id.example.com/jwks.json' } })",
  "createKnexStore({ knex, users: { columns: { email: 'mail', name: false } } })",
  'createKnexStore({ knex, sessions: false })',
]

const folder = join(import.meta.dirname, 'made-up')
const usages = [...wrong.map(([usage]) => usage), ...right]
const units = new Map(usages.map((usage, place) => [join(folder, `${place}.ts`), `${preamble}${usage}]\n`]))
const found = diagnosticsOf(programOf(units), units)

function messagesOf(usage: string): string[] {
  const path = join(folder, `${usages.indexOf(usage)}.ts`)
  return found.filter(({ file }) => file?.fileName === path).map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, ' '))
}

describe('wrong on the first day', () => {
  test.each(wrong)('%s does not compile, and the message names what is wrong', (usage, message) => {
    expect(messagesOf(usage).join(' ')).toMatch(message)
  })
})

test('right on the first day: settings in code, from the environment, and both', () => {
  expect(right.flatMap(messagesOf)).toEqual([])
})
