import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

export const root = join(import.meta.dirname, '../..')

/** Builds `dist` unless it is newer than every source file. `npm run test:all` has built it already; one file run alone may not have. */
export function ensureBuilt(): void {
  const marker = join(root, 'dist/index.mjs')
  if (existsSync(marker) && statSync(marker).mtimeMs > newestSource()) return
  execFileSync('npm', ['run', 'build', '--silent'], { cwd: root, stdio: 'pipe' })
}

function newestSource(): number {
  const src = join(root, 'src')
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.ts'))
  return Math.max(...files.map((path) => statSync(join(src, path)).mtimeMs))
}
