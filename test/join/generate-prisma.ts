import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { PrismaPg } from '@prisma/adapter-pg'

/** The parts of the generated client that the tests use. */
interface Client {
  $transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T>
  $disconnect(): Promise<void>
  $queryRawUnsafe(sql: string, ...values: unknown[]): Promise<unknown>
  $executeRawUnsafe(sql: string, ...values: unknown[]): Promise<number>
}

interface Transaction extends Pick<Client, '$queryRawUnsafe' | '$executeRawUnsafe'> {
  readonly profile: { create(row: { data: { userId: string; company: string } }): Promise<unknown> }
}

interface Generated {
  readonly PrismaClient: new (options: { adapter: PrismaPg }) => Client
  readonly PrismaPg: typeof PrismaPg
}

const schema = `
generator client {
  provider     = "prisma-client"
  output       = "./client"
  moduleFormat = "cjs"
}
datasource db {
  provider = "postgresql"
}
model Profile {
  userId  String @id @map("user_id")
  company String
  @@map("profiles")
}
`

let generated: Promise<Generated> | undefined

/** Runs `prisma generate` once a process. It needs no engine, so no binary is downloaded. */
export function generatePrisma(): Promise<Generated> {
  generated ??= generate()
  return generated
}

async function generate(): Promise<Generated> {
  const require = createRequire(import.meta.url)
  // In the repository, because the generated client imports @prisma/client.
  const root = join(import.meta.dirname, '../../node_modules/.cache')
  mkdirSync(root, { recursive: true })
  const folder = mkdtempSync(join(root, 'doorward-prisma-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'schema.prisma')
  writeFileSync(file, schema)
  const command = join(require.resolve('prisma/package.json'), '../build/index.js')
  const env = { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, CHECKPOINT_DISABLE: '1', PRISMA_HIDE_UPDATE_MESSAGE: '1' }
  await promisify(execFile)(process.execPath, [command, 'generate', '--schema', file], { env })
  const { PrismaClient } = (await import(join(folder, 'client/client.ts'))) as Pick<Generated, 'PrismaClient'>
  return { PrismaClient, PrismaPg }
}
