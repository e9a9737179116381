/**
 * How fast `doorward users import` takes a CSV file into PostgreSQL, and how much memory its process needs: the built command in a
 * process of its own. Then the same file again, where every row is skipped. Fails when doorward misses a goal.
 * `npm run bench -- import [--rows 1000000] [--quick]`, at a quiet moment, after `npm run build`.
 */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { createWriteStream, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { parseArgs } from 'node:util'
import { createSchema } from './lib/postgres-schema.mjs'

const root = join(import.meta.dirname, '../..')
const { values } = parseArgs({ options: { rows: { type: 'string' }, quick: { type: 'boolean' } } })
const rows = Number(values.rows ?? (values.quick ? 20_000 : 1_000_000))
const wanted = { perSecond: 20_000, megabytes: 200 }

const folder = mkdtempSync(join(tmpdir(), 'doorward-bench-'))
const schema = await createSchema()
try {
  await pipeline(people, createWriteStream(join(folder, 'people.csv')))
  writeFileSync(join(folder, 'auth.cjs'), authModule(schema.environment))
  const first = await run('the file is new')
  const again = await run('every row is there')
  const isMet = first.perSecond >= wanted.perSecond && Math.max(first.megabytes, again.megabytes) < wanted.megabytes
  console.log(`goal: ${wanted.perSecond} rows/s, under ${wanted.megabytes} MiB: ${isMet ? 'met' : 'missed'}`)
  process.exitCode = isMet ? 0 : 1
} finally {
  rmSync(folder, { recursive: true, force: true })
  await schema.drop()
}

/** Hashes are as long as bcrypt's. */
function* people(): Iterable<string> {
  yield 'email,password_hash,name,email_verified,created_at\n'
  for (let number = 0; number < rows; number++) {
    const hash = `$2b$10$${randomBytes(40).toString('hex').slice(0, 53)}`
    yield `person${number}@example.test,${hash},Person ${number},true,2020-01-01T00:00:00.000Z\n`
  }
}

function authModule(environment: Readonly<Record<string, string>>): string {
  const [library, knex] = [join(root, 'dist/index.js'), join(root, 'node_modules/knex')].map((path) => JSON.stringify(path))
  return `Object.assign(process.env, ${JSON.stringify(environment)})
const { createAuthRouter, createAuthTables, createKnexStore } = require(${library})
const knex = require(${knex})({ client: 'pg', connection: process.env.BENCH_POSTGRES, searchPath: [process.env.BENCH_SCHEMA] })
module.exports = async () => {
  await createAuthTables(knex)
  return createAuthRouter({
    settings: { jwtSecret: 'an-only-secret-for-measuring-7f3b9a61', publicUrl: 'https://app.example.test', backendLinks: true },
    store: createKnexStore({ knex }),
    environment: 'development',
    logger: { error() {}, warn() {}, info() {}, debug() {} },
  })
}
`
}

async function run(title: string): Promise<{ perSecond: number; megabytes: number }> {
  const begin = performance.now()
  const child = spawn(
    '/usr/bin/env',
    ['time', '-f', '%M', process.execPath, join(root, 'dist/cli.js'), 'users', 'import', 'people.csv', '--json'],
    {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  let [out, err] = ['', '']
  child.stdout.on('data', (text) => (out += text))
  child.stderr.on('data', (text) => (err += text))
  await new Promise((resolve) => child.once('close', resolve))
  const perSecond = rows / ((performance.now() - begin) / 1000)
  const megabytes = Number(/(\d+)\s*$/.exec(err)?.[1]) / 1024
  console.log(`${title}: ${out.trim()} ${perSecond.toFixed(0)} rows/s, at most ${megabytes.toFixed(0)} MiB resident; ${err.trim()}`)
  return { perSecond, megabytes }
}
