/**
 * What writing a page costs on the main thread, once what it says is known: the sign-in page with every way to sign in, and a list of twenty
 * devices, in our own look; CPU of the process, medians of rounds. Fails when a page costs more than its goal.
 * `npm run bench -- pages [--rounds 15] [--quick] [--write]`, at a quiet moment.
 */
import type { Request, Response } from 'express'
import knex from 'knex'
import { createAuthTables, createKnexStore } from '../../src'
import { emptyForm } from '../../src/http/html/document'
import { readerOf } from '../../src/http/html/reader'
import { type Page, showPage } from '../../src/http/html/send-page'
import { devicesPage } from '../../src/pages/account/devices-page'
import { addressLogin, loginPage, providerLogin } from '../../src/pages/login'
import { listedProvider } from '../../src/pages/provider-marks'
import { createContext } from '../../src/router/create-context'
import { readOptions } from './lib/options.mjs'
import { report } from './lib/report.mjs'
import { measureInRounds } from './lib/rounds.mjs'

const options = readOptions({ rounds: 15 })
const pagesEach = options.quick ? 200 : 2_000
const mostMicros = 300

const database = knex({ client: 'better-sqlite3', connection: { filename: ':memory:' }, useNullAsDefault: true })
await createAuthTables(database)
const ctx = createContext({
  store: createKnexStore({ knex: database }),
  environment: 'test',
  logger: { info() {}, warn() {}, error: (fields, message) => console.error(message, fields) },
  settings: {
    jwtSecret: 'an-only-secret-for-measuring-7f3b9a61',
    publicUrl: 'https://app.example.test',
    tokenDelivery: 'cookie',
    pagesEnabled: true,
  },
})
await ctx.readiness?.ready()
const request = Object.assign(Object.create(null), { url: '/login', acceptsLanguages: () => ['en'] }) as Request // what a reader asks of one

const drawn: Readonly<Record<string, () => Page>> = {
  'the sign-in page': signInPage,
  'twenty devices': devices,
}

function signInPage(): Page {
  const reader = readerOf(ctx, request)
  const body = loginPage(reader, emptyForm, {
    form: addressLogin(reader, emptyForm, {
      returnTo: '/orders',
      hasPasskeys: true,
      forgot: reader.href('/forgot-password'),
      mails: 'code',
      signsUp: false,
    }),
    links: ['google', 'github', 'apple', 'corp'].map((key) => providerLogin(reader, listedProvider(new Map(), key), '/orders')),
    signUp: reader.href('/signup'),
    current: null,
  })
  return { page: 'login', title: reader.text('login.title'), body }
}

function devices(): Page {
  const reader = readerOf(ctx, request)
  const at = new Date('2026-03-01T12:00:00.000Z')
  const list = Array.from({ length: 20 }, (_, index) => ({
    id: `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`,
    name: 'Firefox on Linux',
    ip: '192.0.2.1',
    signedInAt: at,
    lastSeenAt: at,
    method: 'by password',
    isCurrent: index === 0,
  }))
  return { page: 'devices', title: reader.text('devices.title'), body: devicesPage(reader, emptyForm, { devices: list, formOf: null }) }
}

/** Takes what a response is given, and keeps how long the page was. */
function sink(): { response: Response; bytes: () => number } {
  let bytes = 0
  const response = Object.assign(Object.create(null), {
    statusCode: 200,
    setHeader() {},
    end: (text: string) => {
      bytes = Buffer.byteLength(text)
    },
  }) as Response // what showing a page asks of one
  return { response, bytes: () => bytes }
}

async function measure(name: string): Promise<{ cpuMicros: number; bytes: number }> {
  const draw = drawn[name]
  if (!draw) throw new Error(`there is no page ${name}`)
  const { response, bytes } = sink()
  const begun = process.cpuUsage()
  for (let count = 0; count < pagesEach; count += 1) showPage(ctx, response, readerOf(ctx, request), draw())
  const { user, system } = process.cpuUsage(begun)
  return { cpuMicros: (user + system) / pagesEach, bytes: bytes() }
}

async function main(): Promise<number> {
  const names = Object.keys(drawn)
  for (const name of names) await measure(name) // compiled, and not counted
  const measured = await measureInRounds(names, options.rounds, measure)
  await database.destroy()
  return report({
    name: 'pages',
    columns: ['page', 'CPU µs', 'bytes'],
    rows: names.map((name) => [name, measured.median(name, 'cpuMicros'), measured.median(name, 'bytes')]),
    goals: names.map((name) => ({
      text: `CPU of ${name}, µs`,
      presented: measured.median(name, 'cpuMicros'),
      bound: 'at most',
      wanted: mostMicros,
    })),
    packages: ['express'],
    options,
  })
}

process.exitCode = await main()
