import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import express from 'express'
import { SMTPServer } from 'smtp-server'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type AuthRouter, createAuthRouter, createAuthTables, createKnexStore, smtpMailer } from '../../src'
import { databases, type OpenDatabase } from '../support/databases'
import { logTap } from '../support/log-tap'
import { appFolder, doorward, emptyFolder } from './run-command'

let db: OpenDatabase
const app = express().set('trust proxy', 1)

beforeAll(async () => {
  const [database] = await databases()
  if (!database) throw new Error('no database')
  db = await database.open()
  await createAuthTables(db.knex)
})

afterAll(() => db.close())

const made = (settings: object = {}, options: object = {}): AuthRouter =>
  createAuthRouter({
    settings: {
      jwtSecret: 'kJ7-Vb2x_Zq81LpTnYw4RsCd5GfHm0aE3uIoX9vQ6tN',
      publicUrl: 'https://app.example.com',
      backendLinks: true,
      ...settings,
    },
    store: createKnexStore({ knex: db.knex }),
    environment: 'test',
    mailer: { send: async () => {} },
    logger: logTap(),
    ...options,
  })

function healthyFolder(auth: unknown): string {
  const folder = appFolder({ auth, app })
  writeFileSync(join(folder, 'both.mjs'), "import { auth as both } from './auth.mjs'\nexport const { auth, app } = both\n")
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ doorward: { auth: 'both.mjs' } }))
  return folder
}

test('silent and exit 0 where all is well; --verbose says what was not looked at; --json is one document', async () => {
  const folder = healthyFolder(made())

  expect(await doorward('doctor', { folder })).toEqual({ exitCode: 0, out: '', err: '' })
  expect((await doorward('doctor --verbose', { folder })).err).toContain('skipped  mail-handshake')
  const { ok, findings, skipped } = JSON.parse((await doorward('doctor --json', { folder })).out)
  expect({ ok, findings }).toEqual({ ok: true, findings: [] })
  expect(skipped.map(({ check }: { check: string }) => check)).not.toContain('proxy-untrusted')
})

test('a warning is exit 0, and 1 with --strict; an error is exit 1', async () => {
  const warned = healthyFolder(made({ accessTokenTtlSeconds: 7_200 }))
  expect(await doorward('doctor', { folder: warned })).toMatchObject({
    exitCode: 0,
    out: expect.stringMatching(/^warning {2}access-token-lifetime\n {2}/),
  })
  expect((await doorward('doctor --strict', { folder: warned })).exitCode).toBe(1)

  const broken = healthyFolder(made({}, { throttle: { login: false } }))
  expect(await doorward('doctor', { folder: broken })).toMatchObject({ exitCode: 1, out: expect.stringMatching(/^error {2}limits-off/) })
  expect(JSON.parse((await doorward('doctor --json', { folder: broken })).out)).toMatchObject({ ok: false })
})

test('a module that throws is the finding boot with its sentence, and its stack comes with --verbose alone', async () => {
  const folder = appFolder(() => made({ jwtSecret: 'short' }))

  const { exitCode, out, err } = await doorward('doctor --json', { folder })
  expect(exitCode).toBe(1)
  expect(JSON.parse(out)).toMatchObject({
    ok: false,
    findings: [{ check: 'boot', level: 'error', what: expect.stringContaining('jwtSecret') }],
  })
  expect(out + err).not.toContain('    at ')
  expect((await doorward('doctor --verbose', { folder })).err).toContain('    at ')
})

test('an auth module that does not end is the finding boot after nine seconds, so the command ends within fifteen', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    let hasBegun = false
    let hasEnded = false
    const folder = appFolder(() => {
      hasBegun = true
      return new Promise(() => {})
    })
    const ended = doorward('doctor --json', { folder }).finally(() => {
      hasEnded = true
    })
    while (!hasBegun) await new Promise(setImmediate)
    await vi.advanceTimersByTimeAsync(8_999)
    expect(hasEnded).toBe(false)
    await vi.advanceTimersByTimeAsync(1)

    const { exitCode, out } = await ended
    expect(exitCode).toBe(1)
    expect(JSON.parse(out)).toMatchObject({
      ok: false,
      findings: [{ check: 'boot', level: 'error', what: expect.stringContaining('9 seconds') }],
    })
  } finally {
    vi.useRealTimers()
  }
})

test('no auth module, words and strange flags are exit 2', async () => {
  expect((await doorward('doctor', { folder: emptyFolder() })).exitCode).toBe(2)
  for (const line of ['doctor more', 'doctor --yes']) expect((await doorward(line)).exitCode).toBe(2)
})

test('peers: what is installed outside of the range is an error', async () => {
  const folder = healthyFolder(made())
  const install = (name: string, manifest: object) => {
    mkdirSync(join(folder, 'node_modules', name), { recursive: true })
    writeFileSync(join(folder, 'node_modules', name, 'package.json'), JSON.stringify(manifest))
  }
  install('doorward', { peerDependencies: { knex: '^3.1.0', express: '^4.21.0 || ^5.0.0', '@types/express': '*' } })
  install('express', { version: '5.1.0' })
  install('@types/express', { version: '1.0.0' })
  for (const [version, isRight] of [
    ['3.1.0', true],
    ['3.10.2-beta.1', true],
    ['3.0.9', false],
    ['2.5.1', false],
    ['4.0.0', false],
  ] as const) {
    install('knex', { version })
    const { findings } = JSON.parse((await doorward('doctor --json', { folder })).out)
    expect(findings).toEqual(isRight ? [] : [expect.objectContaining({ check: 'peers', what: expect.stringContaining(version) })])
  }
})

test('env-file-tracked: a .env that git would take is a warning', async () => {
  const folder = healthyFolder(made())
  mkdirSync(join(folder, '.git'))
  writeFileSync(join(folder, '.env'), 'X=1\n')
  const found = async () =>
    JSON.parse((await doorward('doctor --json', { folder })).out).findings.map(({ check }: { check: string }) => check)

  expect(await found()).toEqual(['env-file-tracked'])
  writeFileSync(join(folder, '.gitignore'), 'node_modules\n.env\n')
  expect(await found()).toEqual([])
})

test('smtpMailer greets the server: one that answers is well, one that is gone is an error', async () => {
  const server = new SMTPServer({ authOptional: true, disabledCommands: ['STARTTLS'], logger: false })
  const port = await new Promise<number>((resolve) => {
    const listening = server.listen(0, '127.0.0.1', () => resolve((listening.address() as { port: number }).port))
  })
  const mailer = smtpMailer({ from: 'no-reply@app.example', host: '127.0.0.1', port })
  const found = async () => (await made({}, { mailer }).doctor({ app })).findings.map(({ check, level }) => [check, level])

  expect(await found()).toEqual([])
  await new Promise<void>((resolve) => server.close(() => resolve()))
  expect(await found()).toEqual([['mail-handshake', 'error']])
})
