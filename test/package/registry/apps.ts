import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { manifest, root } from '../built-package'

/** How an app is installed: beside which packages, by which package manager. */
export interface App {
  name: string
  manager: 'npm' | 'pnpm' | 'yarn'
  packages: Readonly<Record<string, string>>
}

const { peerDependencies: peers, devDependencies: ours } = manifest
const optional = ['@node-rs/argon2', 'bcrypt', 'nodemailer', 'prom-client']

/** `^6.0.0 || ^7.0.0`: 6.0.0, and `^7.0.0`, of which the registry has the newest. */
const oldest = (name: string) => /\d+\.\d+\.\d+/.exec(peers[name] ?? '')?.[0] ?? ''
const newest = (name: string) => peers[name]?.split('||').at(-1)?.trim() ?? ''
const each = (names: readonly string[], version: (name: string) => string) => Object.fromEntries(names.map((name) => [name, version(name)]))
const own = (name: string) => ours[name]?.replace(/^npm:.*@/, '') ?? ''

const node = { '@types/node': own('@types/node') }
const types4 = { ...node, '@types/express': own('@types/express4') }
const types5 = { ...node, '@types/express': own('@types/express') }

/** Not the product: the oldest of all, the newest of all, and none that is optional; each by another package manager. */
export const apps: readonly App[] = [
  {
    name: 'the oldest of every peer, by npm',
    manager: 'npm',
    packages: { ...each(['express', 'knex', ...optional], oldest), ...types4, '@types/nodemailer': '^6.0.0' },
  },
  {
    name: 'the newest of every peer, by pnpm',
    manager: 'pnpm',
    packages: { ...each(['express', 'knex', ...optional], newest), ...types5, '@types/nodemailer': own('@types/nodemailer') },
  },
  { name: 'argon2 alone, by yarn', manager: 'yarn', packages: { ...each(['express', 'knex'], newest), ...types5 } },
]

const managers: Readonly<
  Record<App['manager'], { readonly command: readonly string[]; readonly files?: Readonly<Record<string, string>> }>
> = {
  // A peer out of range fails here, as it does by default; `legacy-peer-deps` of the machine must not hide it.
  npm: { command: ['npm', 'install', '--no-audit', '--no-fund', '--no-legacy-peer-deps', '--strict-peer-deps'] },
  pnpm: {
    command: [
      'npx',
      '--yes',
      '--package=pnpm@10.34.8',
      'pnpm',
      'install',
      '--no-frozen-lockfile',
      '--config.strict-peer-dependencies=true',
      '--config.auto-install-peers=false',
    ],
  },
  yarn: {
    command: ['npx', '--yes', '--package=@yarnpkg/cli-dist@4.18.1', 'yarn', 'install'],
    files: { '.yarnrc.yml': 'nodeLinker: node-modules\nenableImmutableInstalls: false\nenableTelemetry: false\n', 'yarn.lock': '' },
  },
}

/** Installs the app into a folder. @returns what the package manager said */
export async function install({ manager, packages }: App, folder: string, tarball: string): Promise<string> {
  const { command, files = {} } = managers[manager]
  cpSync(join(import.meta.dirname, 'fixtures'), folder, { recursive: true })
  for (const name of ['host.mts', 'host.cts']) cpSync(join(import.meta.dirname, '../fixtures', name), join(folder, name))
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, dependencies: { doorward: `file:${tarball}`, ...packages } }))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  const [program = '', ...args] = command
  const { stdout, stderr } = await promisify(execFile)(program, args, { cwd: folder, maxBuffer: 2 ** 24 })
  mkdirSync(join(folder, 'node_modules'), { recursive: true })
  // No peer of ours, and a minute to compile.
  symlinkSync(join(root, 'node_modules/better-sqlite3'), join(folder, 'node_modules/better-sqlite3'), 'dir')
  return stdout + stderr
}
