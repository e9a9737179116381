import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import express from 'express'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type * as Doorward from '../../src'
import { signIn, testSecret } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { logTap } from '../support/log-tap'
import { sendRaw } from '../support/send-raw'

const root = join(import.meta.dirname, '../..')
const require = createRequire(import.meta.url)
const start = appPerTest()
let folder: string

/** Two installations of the package in one process, as a host gets them when two of its dependencies bring one each. */
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'doorward-copies-'))
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  const compiler = require.resolve('typescript/bin/tsc')
  const build = ['-p', root, '--declaration', 'false', '--noCheck', '--outDir', join(folder, 'one')]
  execFileSync(process.execPath, [compiler, ...build], { cwd: root })
  cpSync(join(folder, 'one'), join(folder, 'two'), { recursive: true })
}, 60_000)

afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('two copies of the package in one process agree on who is signed in', async () => {
  const mounted = await start()
  const { body } = await signIn(mounted)
  const one = require(join(folder, 'one/index.js')) as typeof Doorward
  const two = require(join(folder, 'two/index.js')) as typeof Doorward
  const guards = one.createGuards({ settings: { jwtSecret: testSecret }, now: mounted.clock.now, logger: logTap() })
  const app = express()
  app.get(
    '/api',
    guards.requireAuth(),
    (req, res) => void res.json({ sub: two.getAuth(req).sub, same: two.findAuth(req) === one.findAuth(req) }),
  )

  const answer = await sendRaw(app, { method: 'GET', path: '/api', headers: { Authorization: `Bearer ${body.access_token}` } })

  expect(one.getAuth).not.toBe(two.getAuth)
  expect(answer.body).toEqual({ sub: body.user_id, same: true })
})

test('an error of one copy is the same answer in the other', () => {
  const one = require(join(folder, 'one/index.js')) as typeof Doorward
  const two = require(join(folder, 'two/index.js')) as typeof Doorward
  const error = new one.errors.OAuthEmailTakenError()

  expect([error instanceof two.errors.AppError, error instanceof two.errors.OAuthEmailTakenError]).toEqual([true, false])
  expect(new one.DuplicateRecordError('taken')).toBeInstanceOf(two.DuplicateRecordError)
  expect(new Error('x')).not.toBeInstanceOf(two.errors.AppError)
  expect(new Error('x')).not.toBeInstanceOf(two.DuplicateRecordError)
})
