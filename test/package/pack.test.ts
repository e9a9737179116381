import { execFileSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, posix } from 'node:path'
import ts from 'typescript'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ensureBuilt, manifest, pack, root } from './built-package'
import { typeErrorsIn } from './type-errors'

/**
 * The tarball in a stranger's project. By default it is unpacked and its declared dependencies are links into our own
 * node_modules (an undeclared one is not found); with DOORWARD_PACK=registry it is a true `npm install <tarball>`.
 */
const fromRegistry = process.env.DOORWARD_PACK === 'registry'
const major = process.env.EXPRESS === '4' ? '4' : '5'
const express = major === '4' ? 'express4' : 'express'

const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
  packages: Record<string, { dev?: boolean; hasInstallScript?: boolean; dependencies?: Record<string, string> }>
}
const scratch = mkdtempSync(join(tmpdir(), 'doorward-pack-'))
const installed = join(scratch, 'node_modules/doorward')

interface Report {
  exports: string[]
  statuses: number[]
  me: { id: string; email: string; name: string }
  guarded: { sub: string }
  anonymous: number
  oneCopy: boolean
  /** Which package hashed. */
  hasher: string
  /** Of signup, activation and login with a password. */
  local: number[]
}

beforeAll(() => {
  ensureBuilt()
  const tarball = pack(scratch)
  if (fromRegistry) installFromRegistry(tarball)
  else installFromHere(tarball)
  for (const type of ['commonjs', 'module']) {
    cpSync(join(import.meta.dirname, 'fixtures'), join(scratch, type), { recursive: true })
    writeFileSync(join(scratch, type, 'package.json'), JSON.stringify({ private: true, type }))
  }
}, 300_000)

afterAll(() => rmSync(scratch, { recursive: true, force: true }))

describe('the packed package', () => {
  test('installed into a CommonJS app and into an ESM app, it signs a person in', () => {
    const commonjs = run('commonjs/app.cjs')
    const module = run('module/app.mjs')

    for (const report of [commonjs, module]) {
      expect(report.statuses).toEqual([302, 302, 200])
      expect(report.me).toMatchObject({ email: 'ada@example.com', name: 'Ada Lovelace' })
      expect(report.guarded).toEqual({ sub: report.me.id })
      expect(report.anonymous).toBe(401)
      expect([report.hasher, report.local]).toEqual(['argon2', [201, 200, 200]])
    }
    expect(module.exports).toEqual(commonjs.exports)
    expect(module.exports).toContain('createAuthRouter')
  }, 60_000)

  test('of its dependencies only argon2 has an install script, and its binary works where the script was never run', () => {
    const scripted = Object.entries(lock.packages).filter(([path, { dev, hasInstallScript }]) => path !== '' && hasInstallScript && !dev)
    expect(scripted.map(([path]) => path)).toEqual(['node_modules/argon2'])

    // As the registry has it: what a script would have built is not there.
    const own = join(scratch, 'node_modules/argon2')
    rmSync(own, { recursive: true, force: true })
    cpSync(realpathSync(join(root, 'node_modules/argon2')), own, { recursive: true, filter: (path) => !/argon2\/build(\/|$)/.test(path) })
    for (const name of Object.keys(lock.packages['node_modules/argon2']?.dependencies ?? {})) {
      rmSync(join(scratch, 'node_modules', name), { recursive: true, force: true })
      link(name)
    }
    expect(run('commonjs/app.cjs').local).toEqual([201, 200, 200])
  }, 60_000)

  test('its classes have the names they are exported under: in one file two of a name would not', () => {
    const main: Record<string, unknown> & { errors: object } = createRequire(import.meta.url)(join(installed, 'dist/index.js'))
    const classes = [...Object.entries(main), ...Object.entries(main.errors)].flatMap(([name, value]) =>
      typeof value === 'function' && /^[A-Z]/.test(name) ? [[name, value.name]] : [],
    )
    expect(classes.length).toBeGreaterThan(25)
    expect(classes.filter(([name, own]) => name !== own)).toEqual([])
    for (const file of filesOf(installed).filter((path) => /^dist\/(?!client\/).*\.js$/.test(path))) // those are for browsers
      expect(readFileSync(join(installed, file), 'utf8')).toMatch(/^(#!.*\n)?["']use strict["']/)
  })

  test('its code is ASCII: any other character would make V8 keep the whole file as text of two bytes a character', () => {
    const code = filesOf(installed).filter((path) => /^dist\/.*\.m?js$/.test(path))
    expect(code.length).toBeGreaterThan(5)
    expect(code.filter((path) => /[^\0-\x7f]/.test(readFileSync(join(installed, path), 'utf8')))).toEqual([])
  })

  test('an app that both imports and requires it has one copy: instanceof holds across', () => {
    expect(run('commonjs/app.cjs').oneCopy).toBe(true)
    expect(run('module/app.mjs').oneCopy).toBe(true)
  }, 60_000)

  test(`compiles in a strict host with the types of Express ${major}`, () => {
    expect(typeErrors(['commonjs/host.cts', 'module/host.mts'])).toEqual([])
  }, 60_000)

  test('a wrong use of its types is an error, so that the test above can fail', () => {
    writeFileSync(join(scratch, 'module/wrong.mts'), "import { createAuthRouter } from 'doorward'\ncreateAuthRouter({ settings: 1 })\n")

    expect(typeErrors(['module/wrong.mts'])).toEqual([expect.stringContaining('/module/wrong.mts')])
  }, 60_000)

  test('holds the build, the licence, the changelog, the readme, the docs and the examples, and nothing else', () => {
    const files = filesOf(installed)
    const required = ['README.md', 'LICENSE', 'CHANGELOG.md', 'dist/index.js', 'dist/index.d.ts', 'dist/index.mjs', 'dist/index.d.mts']
    const expected =
      /^(package\.json|README\.md|LICENSE|(CHANGELOG|CONTRIBUTING|SECURITY)\.md|dist\/(index|testing)\.(js|mjs|d\.mts)|dist\/(library|rolldown-runtime|client-flow|error-sentence|examine|operations|open-session|purge-now|purge-state|deliver|cli)\.js|dist\/client\/(client|passkeys|captcha|admin|react)\.js|dist\/client\/package\.json|dist\/cli\.LICENSES\.txt|dist\/[\w/-]+\.d\.ts|docs\/((moving|providers)\/)?[\w-]+\.md|examples\/(?!demo\/)[\w./-]+)$/

    expect(files.filter((file) => !expected.test(file))).toEqual([])
    expect(required.filter((file) => !files.includes(file))).toEqual([])
    expect(files.filter((file) => file.endsWith('.d.ts') && !existsSync(sourceOf(file)))).toEqual([])
  })

  test('its pages link only to files that are in it', () => {
    const pages = filesOf(installed).filter((file) => file.endsWith('.md'))
    const links = pages.flatMap((page) =>
      [...readFileSync(join(installed, page), 'utf8').matchAll(/\]\(([^)\s#]+)/g)].map(([, link = '']) => ({ page, link })),
    )
    const inside = links.filter(({ link }) => !/^[a-z]+:/.test(link))

    expect(inside.filter(({ page }) => page === 'README.md').length).toBeGreaterThan(20)
    expect(inside.filter(({ page, link }) => !existsSync(join(installed, dirname(page), link)))).toEqual([])
  })

  test('names no path of the machine it was built on', () => {
    const files = filesOf(installed).map((file) => join(installed, file))

    expect(files.filter((file) => readFileSync(file, 'utf8').includes(root))).toEqual([])
  })

  test('its declarations import its own files, Node, the peers and dependencies that bring their own types, and nothing else', () => {
    const declarations = ['index.d.ts', 'testing.d.ts'].flatMap((entry) => [...reachedFrom(entry)])
    const foreign = declarations.flatMap((file) =>
      foreignImports(readFileSync(join(installed, 'dist', file), 'utf8')).map((name) => `${file}: ${name}`),
    )

    expect(declarations).toContain('options.d.ts')
    expect(foreign).toEqual([])
  })

  test('a declaration that imports anything else is found, however it does', () => {
    expect(foreignImports("import type { A } from 'passport'")).toEqual(['passport'])
    expect(foreignImports("export declare const a: import('oauth').OAuth2")).toEqual(['oauth'])
    expect(foreignImports("export * from '@types/passport'")).toEqual(['@types/passport'])
    expect(foreignImports('/// <reference types="passport" />')).toEqual(['passport'])
    expect(foreignImports("import type { Knex } from 'knex'\nimport 'node:http'\nexport * from './errors'")).toEqual([])
  })
})

function installFromHere(tarball: string): void {
  mkdirSync(installed, { recursive: true })
  execFileSync('tar', ['-xzf', tarball, '--strip-components=1', '-C', installed])
  for (const name of Object.keys(manifest.dependencies)) link(name)
  link(express, 'express')
  link(`@types/${express}`, '@types/express')
  for (const name of ['knex', 'better-sqlite3', '@types/node']) link(name)
}

function link(name: string, as = name): void {
  const path = join(scratch, 'node_modules', as)
  rmSync(path, { force: true })
  mkdirSync(dirname(path), { recursive: true })
  symlinkSync(join(root, 'node_modules', name), path, 'dir')
}

function installFromRegistry(tarball: string): void {
  const peers = [express, `@types/${express}`, 'knex', 'better-sqlite3', '@types/node'].map(specifier)
  writeFileSync(join(scratch, 'package.json'), JSON.stringify({ private: true }))
  npm(['install', '--no-audit', '--no-fund', tarball, ...peers], scratch)
}

/** `name@version`, or for an alias of ours the package it stands for. */
function specifier(name: string): string {
  const version = manifest.devDependencies[name] ?? ''
  return version.startsWith('npm:') ? version.slice('npm:'.length) : `${name}@${version}`
}

function npm(args: string[], cwd: string): string {
  return execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
}

/** Without our own environment: NODE_PATH or NODE_OPTIONS could lend the app what it lacks. */
function run(app: string): Report {
  const out = execFileSync(process.execPath, [join(scratch, app)], {
    encoding: 'utf8',
    timeout: 30_000,
    env: { PATH: process.env.PATH },
  })
  return JSON.parse(out.trim().split('\n').at(-1) ?? '') as Report
}

function typeErrors(files: string[]): string[] {
  return typeErrorsIn(scratch, files, 'node16')
}

/** The declarations that a host's compiler reads; one that no entry leads to may name an optional peer. */
function reachedFrom(file: string, reached = new Set<string>()): Set<string> {
  reached.add(file)
  for (const { fileName } of ts.preProcessFile(readFileSync(join(installed, 'dist', file), 'utf8'), true, true).importedFiles) {
    const next = posix.join(posix.dirname(file), `${fileName}.d.ts`)
    if (fileName.startsWith('.') && !reached.has(next)) reachedFrom(next, reached)
  }
  return reached
}

function foreignImports(declaration: string): string[] {
  const { importedFiles, typeReferenceDirectives } = ts.preProcessFile(declaration, true, true)
  const names = [...importedFiles, ...typeReferenceDirectives].map((reference) => reference.fileName)
  return names.filter((name) => !/^(\.|node:|(express|knex|joi|undici|node)$)/.test(name))
}

function filesOf(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  return files.map((file) => file.slice(folder.length + 1).replaceAll('\\', '/')).filter((file) => !file.startsWith('node_modules/'))
}

function sourceOf(file: string): string {
  return join(root, file.replace(/^dist\//, 'src/').replace(/\.d\.ts$/, '.ts'))
}
