import { join } from 'node:path'
import ts from 'typescript'

const root = join(import.meta.dirname, '../..')

/** Compiles texts as if they were files at these paths, in a host's project: strict, and `doorward` is our source. */
export function programOf(units: ReadonlyMap<string, string>, more: ts.CompilerOptions = {}): ts.Program {
  const options = { ...compilerOptions(), ...more }
  const host = ts.createCompilerHost(options)
  const { fileExists, directoryExists, readFile, getSourceFile } = host
  host.fileExists = (path) => units.has(path) || fileExists(path)
  host.directoryExists = (path) => [...units.keys()].some((unit) => unit.startsWith(`${path}/`)) || directoryExists?.(path) === true
  host.readFile = (path) => units.get(path) ?? readFile(path)
  host.getSourceFile = (path, version, ...rest) => {
    const text = units.get(path)
    return text === undefined ? getSourceFile(path, version, ...rest) : ts.createSourceFile(path, text, version)
  }
  return ts.createProgram([...units.keys()], options, host)
}

/** What is wrong with these texts, or with the project as a whole. */
export function diagnosticsOf(program: ts.Program, units: ReadonlyMap<string, string>): ts.Diagnostic[] {
  return ts.getPreEmitDiagnostics(program).filter(({ file }) => !file || units.has(file.fileName))
}

/** Ours, for a host's file: modules always, JavaScript included, and unused names are no error in an excerpt. */
function compilerOptions(): ts.CompilerOptions {
  const path = join(root, 'test/tsconfig.json')
  const { options } = ts.parseJsonConfigFileContent(ts.readConfigFile(path, ts.sys.readFile).config, ts.sys, join(root, 'test'))
  const host = { allowJs: true, checkJs: true, noImplicitAny: true, moduleDetection: ts.ModuleDetectionKind.Force }
  return { ...options, ...host, noUnusedLocals: false, noUnusedParameters: false, erasableSyntaxOnly: false }
}
