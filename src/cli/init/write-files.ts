import { closeSync, mkdirSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { sentenceOf } from '../../core/error-sentence'
import { CommandRefusal } from '../answer'

export interface NewFile {
  /** The path, relative to the folder of the app. */
  readonly path: string
  readonly text: string
}

/**
 * Writes all files or no file. The function overwrites no file.
 * @throws CommandRefusal if a file cannot be written
 */
export function writeFiles(folder: string, files: readonly NewFile[]): void {
  const made: string[] = []
  for (const { path, text } of files) {
    try {
      const directory = mkdirSync(join(folder, dirname(path)), { recursive: true }) // the first directory that mkdirSync creates
      if (directory !== undefined) made.push(directory)
      const file = openSync(join(folder, path), 'wx')
      made.push(join(folder, path))
      writeFileSync(file, text)
      closeSync(file)
    } catch (error) {
      for (const written of made.toReversed()) rmSync(written, { recursive: true, force: true })
      throw new CommandRefusal('NOT_WRITTEN', `${path} cannot be written, so nothing was: ${sentenceOf(error)}`, { cause: error })
    }
  }
}
