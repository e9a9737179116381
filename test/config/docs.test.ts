import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { Settings } from '../../src/core/config/every-setting'
import { environmentVariable, resolveSettings } from '../../src/core/config/settings'
import { settingNames, settingsSchema } from '../../src/core/config/settings-schema'
import type { AuthRouterOptions } from '../../src/options'

const page = readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8')
const rows = page
  .slice(page.indexOf('## Settings'), page.indexOf('## Options of the router'))
  .split('\n')
  .filter((line) => line.startsWith('| `'))
  .map((line) => line.split(' | ').map((cell) => cell.replace(/^\| | \|$/g, '').trim()))

/** What the table says where a default is no plain value; `settings.test.ts` proves what they mean. */
const toldOtherwise: Partial<Record<keyof Settings, string>> = {
  jwtSecret: 'required',
  publicUrl: 'empty',
  realm: 'empty',
  oauthAllowAccountCreation: 'as `signupEnabled`',
  sessionMaxSeconds: 'the greater of `2592000` and `sessionTtlSeconds`',
  openapiEnabled: '`false` in production, else `true`',
  invitationsEnabled: "`true` with `signupMode: 'invite'`, else `false`",
}

const defaults = resolveSettings({ jwtSecret: 'Zq8vR2nX5tLw0cJ7hYb3KdMf9sPg6aUe' }, { production: true })

function defaultCell(setting: keyof Settings): string {
  const value = defaults[setting]
  if (value === null) return 'none'
  return toldOtherwise[setting] ?? `\`${typeof value === 'object' ? JSON.stringify(value) : value}\``
}

test('the table has one row for every setting and no other', () => {
  expect(rows.map(([setting]) => setting).sort()).toEqual(settingNames.map((setting) => `\`${setting}\``).sort())
})

test('every option of the router is documented, and no other', () => {
  const known: Record<keyof AuthRouterOptions, true> = {
    settings: true,
    store: true,
    prefix: true,
    providers: true,
    environment: true,
    mailer: true,
    templates: true,
    theme: true,
    languages: true,
    passwordHasher: true,
    passwordPolicy: true,
    refusesEmailLink: true,
    accessTokenClaims: true,
    signup: true,
    loginTasks: true,
    guardRequest: true,
    captcha: true,
    captchaWhen: true,
    onTakeOver: true,
    onInvitationAccepted: true,
    onDelete: true,
    onExport: true,
    auditLog: true,
    onProviderTokens: true,
    checkTables: true,
    purge: true,
    outbox: true,
    timingDefence: true,
    throttle: true,
    logger: true,
    now: true,
    loginWithProvider: true,
    issueMfaToken: true,
  }
  const table = page.slice(page.indexOf('## Options of the router'), page.indexOf('### `argon2idHasher'))
  const documented = [...table.matchAll(/^\| `(\w+)`/gm)].map(([, name]) => name)
  expect(documented.sort()).toEqual(Object.keys(known).sort())
})

describe.each(settingNames)('%s', (setting) => {
  const row = rows.find(([name]) => name === `\`${setting}\``) ?? []

  test('is documented with its environment variable and its default', () => {
    expect(row).toHaveLength(4)
    expect(row[1]).toBe(`\`${environmentVariable(setting)}\``)
    expect(row[2]).toBe(defaultCell(setting))
  })

  test('is documented with its range and its choices', () => {
    const { type } = settingsSchema.extract(setting)
    const rules = JSON.stringify(settingsSchema.extract(setting).describe())
    if (type === 'number') {
      const [least, most] = [/"min","args":\{"limit":(\d+)/, /"max","args":\{"limit":(\d+)/].map((limit) => limit.exec(rules)?.[1])
      expect(row[3]).toMatch(new RegExp(`^${least} to ${most}\\b`))
    }
    const choices = settingsSchema.extract(setting).describe()['allow']
    for (const choice of Array.isArray(choices) ? choices : []) {
      if (typeof choice === 'string' && choice !== '') expect(row[3]).toContain(`\`${choice}\``)
    }
  })
})
