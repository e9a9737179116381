import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ensureBuilt, pack } from '../built-package'
import { typeErrorsIn } from '../type-errors'
import { apps, install } from './apps'

/** The packed package in apps that install it from the registry: the oldest and the newest of every peer, and none that is optional. */

const scratch = mkdtempSync(join(tmpdir(), 'doorward-matrix-'))
const folderOf = (place: number) => join(scratch, String(place))
let said: string[] = []

beforeAll(async () => {
  ensureBuilt()
  const tarball = pack(scratch)
  said = await Promise.all(
    apps.map((app, place) => {
      mkdirSync(folderOf(place))
      return install(app, folderOf(place), tarball)
    }),
  )
}, 400_000)

afterAll(() => rmSync(scratch, { recursive: true, force: true }))

const withPeers = {
  statuses: [201, 200, 200],
  hash: ['argon2id', 'v=19'],
  hashedBy: '@node-rs/argon2',
  bcrypt: [true, true, false],
  metrics: true,
  mails: [3, 'refused, retryable false', 0],
  missing: [],
}
const alone = {
  ...withPeers,
  hashedBy: 'argon2',
  bcrypt: null,
  metrics: null,
  mails: null,
  missing: [
    ...[
      'smtpMailer needs the package nodemailer; run `npm install nodemailer`.',
      'bcryptHasher() needs the package bcrypt; run `npm install bcrypt`.',
      'metrics() needs the package prom-client; run `npm install prom-client`.',
    ].map((sentence) => `ConfigurationError: ${sentence} See docs/troubleshooting.md#a-package-is-missing`),
  ],
}

describe.each(apps.map((app, place) => ({ ...app, place })))('$name', ({ packages, place }) => {
  const folder = folderOf(place)
  const hasPeers = packages['nodemailer'] !== undefined

  test('installs without a word about our peers', () => {
    expect(said[place]).not.toMatch(/ERESOLVE|unmet peer|YN0060|YN0002|YN0086/)
    expect(existsSync(join(folder, 'node_modules/doorward/docs/getting-started.md'))).toBe(true)
    expect(existsSync(join(folder, 'node_modules/@node-rs/argon2'))).toBe(hasPeers)
  })

  test.each(['app.cjs', 'app.mjs'])(
    '%s signs a person in and uses every peer it has',
    async (file) => {
      const { stdout } = await promisify(execFile)(process.execPath, [join(folder, file)], {
        timeout: 60_000,
        env: { PATH: process.env.PATH },
      })

      expect(JSON.parse(stdout.trim().split('\n').at(-1) ?? '')).toEqual(hasPeers ? withPeers : alone)
    },
    90_000,
  )

  test.each(['nodenext', 'bundler'] as const)(
    'compiles, strict and with skipLibCheck: false, under %s',
    (resolution) => {
      const modules = ['host.mts', ...(hasPeers ? ['peers.mts'] : [])]

      expect(typeErrorsIn(folder, resolution === 'bundler' ? modules : [...modules, 'host.cts'], resolution)).toEqual([])
    },
    120_000,
  )
})
