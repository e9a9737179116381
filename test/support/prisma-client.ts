import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { promisify } from 'node:util'

const require = createRequire(import.meta.url)

/**
 * Makes `generated` beside the `schema.prisma` of a folder, unless it is there. Two processes may call it at once. `prisma generate` downloads an
 * engine that it does not use here, so it gets another program for it.
 */
export async function generatePrismaClient(folder: string): Promise<void> {
  const schema = readFileSync(join(folder, 'schema.prisma'), 'utf8')
  const stamp = createHash('sha256')
    .update(`${schema}${require('prisma/package.json').version}`)
    .digest('hex')
  const generated = join(folder, 'generated')
  if (stampOf(generated) === stamp) return
  const scratch = mkdtempSync(join(folder, 'generated-'))
  try {
    writeFileSync(join(scratch, 'schema.prisma'), schema)
    const env = { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, CHECKPOINT_DISABLE: '1', PRISMA_HIDE_UPDATE_MESSAGE: '1' }
    const command = join(require.resolve('prisma/package.json'), '../build/index.js')
    await promisify(execFile)(process.execPath, [command, 'generate', '--schema', join(scratch, 'schema.prisma')], { env })
    writeFileSync(join(scratch, 'generated/stamp'), stamp)
    replace(generated, join(scratch, 'generated'), stamp)
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

function replace(old: string, fresh: string, stamp: string): void {
  if (stampOf(old) !== stamp) rmSync(old, { recursive: true, force: true })
  try {
    renameSync(fresh, old)
  } catch (error) {
    if (stampOf(old) !== stamp) throw error // else another process was faster
  }
}

function stampOf(folder: string): string | null {
  const file = join(folder, 'stamp')
  return existsSync(file) ? readFileSync(file, 'utf8') : null
}
