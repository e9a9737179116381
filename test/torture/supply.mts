/**
 * The tarball in a stranger's project, from the registry and with no install script run (`npm install --ignore-scripts`): an app
 * on PostgreSQL signs people in by a provider and by a password, on both majors of Express, as CommonJS and as ESM. Then
 * `npm audit` of what a host installs, where the registry answers it; a finding that docs/dependencies.md does not explain fails.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import knex from 'knex'
import { type Audit, unexplained } from '../support/audit'

const root = join(import.meta.dirname, '../..')
const { devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { devDependencies: Record<string, string> }
const postgres = process.env.DOORWARD_TEST_PG ?? 'postgres://postgres@127.0.0.1:5432/test'
const expected = { statuses: [302, 302, 200], anonymous: 401, hasher: 'argon2', local: [201, 200, 200], oneCopy: true }

const folder = mkdtempSync(join(tmpdir(), 'doorward-supply-'))
try {
  npm(root, 'run', 'build', '--silent')
  const [packed] = JSON.parse(npm(root, 'pack', '--ignore-scripts', '--json', '--pack-destination', folder)) as [{ filename: string }]
  for (const major of ['5', '4']) await tryOn(major, join(folder, packed.filename))
} finally {
  rmSync(folder, { recursive: true, force: true })
}

async function tryOn(major: string, tarball: string): Promise<void> {
  const app = join(folder, `express${major}`)
  cpSync(join(root, 'test/package/fixtures'), join(app, 'commonjs'), { recursive: true })
  cpSync(join(root, 'test/package/fixtures'), join(app, 'module'), { recursive: true })
  writeFileSync(join(app, 'commonjs/package.json'), JSON.stringify({ private: true, type: 'commonjs' }))
  writeFileSync(join(app, 'module/package.json'), JSON.stringify({ private: true, type: 'module' }))
  writeFileSync(join(app, 'package.json'), JSON.stringify({ private: true }))
  const express = major === '4' ? String(devDependencies['express4']).replace('npm:', '') : `express@${devDependencies['express']}`
  const peers = [express, `knex@${devDependencies['knex']}`, `pg@${devDependencies['pg']}`]
  npm(app, 'install', '--ignore-scripts', '--no-audit', '--no-fund', tarball, ...peers)
  for (const script of ['commonjs/app.cjs', 'module/app.mjs'])
    await inSchema((database) => check(`${express} ${script}`, join(app, script), database))
  audit(app, express)
}

function check(name: string, script: string, database: object): void {
  const env = { PATH: process.env.PATH ?? '', SCRATCH_DATABASE: JSON.stringify(database) }
  const { stdout, stderr, status } = spawnSync(process.execPath, [script], { encoding: 'utf8', timeout: 60_000, env })
  const report =
    status === 0 ? (JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Record<string, unknown>) : { failed: stderr.slice(-2_000) }
  const differing = Object.entries(expected).filter(([field, value]) => JSON.stringify(report[field]) !== JSON.stringify(value))
  say(differing.length === 0, `${name}: ${differing.length === 0 ? JSON.stringify(expected) : JSON.stringify(report)}`)
}

async function inSchema(work: (database: object) => void): Promise<void> {
  const schema = `doorward_supply_${randomBytes(4).toString('hex')}`
  const administrator = knex({ client: 'pg', connection: postgres })
  try {
    await administrator.raw('create schema ??', [schema])
    work({ client: 'pg', connection: postgres, searchPath: [schema], pool: { min: 0, max: 4 } })
  } finally {
    await administrator.raw('drop schema ?? cascade', [schema])
    await administrator.destroy()
  }
}

function audit(app: string, name: string): void {
  const { stdout } = spawnSync('npm', ['audit', '--omit=dev', '--json'], { cwd: app, encoding: 'utf8' })
  const answer = JSON.parse(stdout || '{}') as Audit
  const { vulnerabilities, message } = answer
  if (!vulnerabilities) {
    console.log(`  -  ${name}: npm audit is not answered by this registry (${(message ?? 'no answer').slice(0, 40)})`)
    return
  }
  const ids = unexplained(answer, readFileSync(join(root, 'docs/dependencies.md'), 'utf8'))
  say(ids.length === 0, `${name}: npm audit names ${Object.keys(vulnerabilities).length} packages, unexplained ${JSON.stringify(ids)}`)
}

function say(isGood: boolean, sentence: string): void {
  console.log(`${isGood ? ' ok ' : 'FAIL'} ${sentence}`)
  if (!isGood) process.exitCode = 1
}

function npm(cwd: string, ...args: string[]): string {
  return execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
}
