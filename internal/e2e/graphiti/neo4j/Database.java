import java.nio.file.Path;
import org.neo4j.harness.Neo4jBuilders;

/** A Neo4j in a folder. It prints its address, and ends when its input does. */
public class Database {
  public static void main(String[] args) throws Exception {
    try (var db = Neo4jBuilders.newInProcessBuilder(Path.of(args[0])).withDisabledServer().build()) {
      System.out.println(db.boltURI());
      while (System.in.read() >= 0) {}
    }
  }
}
