import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

export const root = join(import.meta.dirname, '../..')

/** Our package.json. */
export const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Record<
  'dependencies' | 'devDependencies' | 'peerDependencies',
  Record<string, string>
>

/** Packs the package into a folder. `dist` has to be fresh, because `prepack` would build it under the feet of other tests. @returns the tarball */
export function pack(folder: string): string {
  const args = ['pack', '--ignore-scripts', '--json', '--pack-destination', folder]
  const [packed] = JSON.parse(execFileSync('npm', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })) as [
    { filename: string },
  ]
  return join(folder, packed.filename)
}

/** Builds `dist` unless it is newer than every source file. `npm run test:all` has built it already; one file run alone may not have. */
export function ensureBuilt(): void {
  const marker = join(root, 'dist/index.mjs')
  if (existsSync(marker) && statSync(marker).mtimeMs > newestSource()) return
  execFileSync('npm', ['run', 'build', '--silent'], { cwd: root, stdio: 'pipe' })
}

function newestSource(): number {
  const src = join(root, 'src')
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.ts'))
  const paths = [...files.map((path) => join(src, path)), join(src, 'client/tsconfig.json'), join(root, '.ci/build.mts')]
  return Math.max(...paths.map((path) => statSync(path).mtimeMs))
}
