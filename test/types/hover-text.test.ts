import { join } from 'node:path'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'
import { environmentVariable, resolveSettings } from '../../src/core/config/settings'
import { programOf } from '../support/compile'

/** What an editor shows of a setting or an option. */

const entries = ['index.ts', 'testing.ts'].map((name) => join(import.meta.dirname, '../../src', name))
const program = programOf(new Map(entries.map((path) => [path, ts.sys.readFile(path) ?? ''])))
const checker = program.getTypeChecker()
const exported = entries.flatMap((path) => {
  const file = program.getSourceFile(path)
  const module = file && checker.getSymbolAtLocation(file)
  return module ? checker.getExportsOfModule(module).map(resolved) : []
})

function resolved(symbol: ts.Symbol): ts.Symbol {
  return symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
}

/** What a host writes: options and settings, tables and keys. Templates are named by their topics and pages. */
const isInput = ({ name, flags }: ts.Symbol) =>
  (flags & (ts.SymbolFlags.Interface | ts.SymbolFlags.TypeAlias)) !== 0 &&
  /(Options|Input|Settings|Policy|Endpoints|Key|Map|Tables|Budget|^Templates)$/.test(name)

interface Property {
  path: string
  text: string
}

function propertiesOf(symbol: ts.Symbol): Property[] {
  return read(checker.getDeclaredTypeOfSymbol(symbol), symbol.name)
}

/** With those of a type that is written out in place. */
function read(type: ts.Type, path: string): Property[] {
  return checker
    .getPropertiesOfType(type)
    .filter(isOurs)
    .flatMap((property) => {
      const text = ts.displayPartsToString(property.getDocumentationComment(checker)).replaceAll(/\s+/g, ' ')
      const inner = checker.getNonNullableType(checker.getTypeOfSymbol(property))
      const here = { path: `${path}.${property.name}`, text }
      return isWrittenOut(inner) ? [here, ...read(inner, here.path)] : [here]
    })
}

const isOurs = (property: ts.Symbol) => property.declarations?.every((node) => node.getSourceFile().fileName.includes('/src/')) ?? true

function isWrittenOut({ symbol }: ts.Type): boolean {
  return symbol !== undefined && (symbol.flags & ts.SymbolFlags.TypeLiteral) !== 0 && (symbol.members?.size ?? 0) > 0
}

const settings = exported.filter(({ name }) => /^(Settings|SettingsInput|EnvSettings|RouterSettings|GuardSettingsInput)$/.test(name))

describe('what an editor shows', () => {
  test('every setting and every option has a text', () => {
    const inputs = exported.filter(isInput)

    expect(inputs.map(({ name }) => name)).toEqual(expect.arrayContaining(['AuthRouterOptions', 'KnexStoreOptions', 'Settings']))
    expect(
      inputs
        .flatMap(propertiesOf)
        .filter(({ text }) => text === '')
        .map(({ path }) => path),
    ).toEqual([])
  })

  test.each(settings.map((symbol) => [symbol.name, symbol] as const))(
    '%s: each text names the variable, and its default',
    (_name, symbol) => {
      const texts = propertiesOf(symbol).filter(({ path }) => !/\.(jwksUri|algorithms)$/.test(path))
      const names = texts.map(({ path }) => path.split('.')[1] as Parameters<typeof environmentVariable>[0])

      expect(texts.length).toBeGreaterThan(54)
      expect(texts.filter(({ text }, place) => !text.includes(`\`${environmentVariable(names[place] ?? 'jwtSecret')}\``))).toEqual([])
      expect(texts.filter(({ path, text }) => !/Default|Required/.test(text) && !path.endsWith('.jwtSecret'))).toEqual([])
    },
  )

  test('the default in a text is the one that holds', () => {
    const defaults: Readonly<Record<string, unknown>> = {
      ...resolveSettings({ jwtSecret: 'Zq8vR2nX5tLw0cJ7hYb3KdMf9sPg6aUe' }, { production: true }),
    }
    const said = settings.filter(({ name }) => name === 'Settings').flatMap(propertiesOf)
    const wrong = said.filter(({ path, text }) => {
      const value = defaults[path.slice('Settings.'.length)]
      const plain = /Default (`[^`]*`|-?\w+)/.exec(text)?.[1]?.replaceAll('`', '')
      if (plain === undefined) return !/Required\.|Default: as/.test(text)
      return plain !== (value === '' ? 'empty' : Array.isArray(value) ? JSON.stringify(value).replaceAll('"', "'") : String(value))
    })
    expect(wrong).toEqual([])
  })

  test('a setting that counts seconds, bytes or characters says so', () => {
    const said = settings.filter(({ name }) => name === 'Settings').flatMap(propertiesOf)
    const silent = said.filter(({ path, text }) => /Seconds$/.test(path) && !/seconds/.test(text))

    expect(silent).toEqual([])
  })
})
